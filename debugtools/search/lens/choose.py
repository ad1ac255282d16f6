"""Which candidates to keep in FP32: by additive squares first, then by trying.

The single effects' squares add up to that of a set. So the cheapest set to keep is a knapsack: what stays low must not
exceed the bound's square for any output. What it comes to is measured; where it fails more is kept, where it holds
what is needless is left out again, until no single node can be (1-minimal). Cheaper sets that are predicted just beyond
the bound are tried too, and such with other nodes in place of some.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_STEPS = 2000
_BEYOND = (1.02, 1.05, 1.1, 1.2)
_HOPELESS = 1.03
_MANY = 24  # nodes that are kept, beyond which no others are tried in their place
_SMALL, _TRIES = 16, 8  # so many sets a node are tried of few nodes, a set for so many nodes of many


class Item(Struct, frozen=True):
    """A candidate: its effect squared on each output, over the bound's square; the cost of keeping it in FP32."""

    squares: tuple[float, ...]
    cost: float


def cheapest(items: Sequence[Item], slack: float = 1.0, rest: Sequence[float] = ()) -> frozenset[int]:
    """Positions to keep, of the least cost so that what is left adds up to at most `slack` for every output; all of
    them where no set does. rest: what is low besides, for each output.
    """
    must = {k for k, item in enumerate(items) if not all(map(math.isfinite, item.squares))}
    free = [k for k in range(len(items)) if k not in must]
    outputs = len(items[0].squares) if items else 0
    more = rest or [0.0] * outputs
    kept = set(must)
    for _ in range(outputs):
        left = [sum(items[k].squares[o] for k in free if k not in kept) + more[o] for o in range(outputs)]
        worst = int(np.argmax(left)) if left else 0
        if not left or left[worst] <= slack:
            break
        kept |= _knapsack([(k, items[k].squares[worst], items[k].cost) for k in free if k not in kept],
                          left[worst] - slack)  # fmt: skip
    return frozenset(kept)


def _knapsack(given: Sequence[tuple[int, float, float]], needed: float) -> set[int]:
    """The cheapest ones whose squares add up to what is needed; costs in steps of a two thousandth of all."""
    total = sum(cost for _, _, cost in given) or 1.0
    prices = [max(1, math.ceil(_STEPS * cost / total)) for _, _, cost in given]
    size = sum(prices) + 1
    best: NDArray[np.float64] = np.full(size, -1.0)
    best[0] = 0.0
    taken = np.zeros((len(given), size), np.bool_)
    for row, ((_, square, _), price) in enumerate(zip(given, prices, strict=True)):
        moved = np.full(size, -1.0)
        moved[price:] = np.where(best[:-price] >= 0, best[:-price] + square, -1.0)
        taken[row] = moved > best
        best = np.maximum(best, moved)
    enough = np.flatnonzero(best >= needed * (1 - 1e-12))
    if not enough.size:
        return {k for k, _, _ in given}
    at, chosen = int(enough[0]), set()
    for row in range(len(given) - 1, -1, -1):
        if taken[row, at]:
            chosen.add(given[row][0])
            at -= prices[row]
    return chosen


class Choice(Struct):
    """kept: positions; minimal: no single one can be left out, of `clear` of them without measuring. tries: sets that
    were measured.
    """

    kept: frozenset[int] | None
    minimal: bool
    tries: int
    clear: int = 0


class Choosing:
    """holds: whether the bound is kept with a set in FP32, by measuring. limit: how often it may ask. beyond: times the
    bound's square from which on a prediction is believed to fail, when a node is left out that is kept; sure: in spite
    of doubt.
    doubt: whether sets that were measured are not what was predicted, so that others may be cheaper. least: what the
    squares of measured sets came to at least, over the predicted ones: a set that would be beyond the bound even so is
    not tried.
    """

    def __init__(
        self, items: Sequence[Item], holds: Callable[[frozenset[int]], bool], limit: int, beyond: float = math.inf,
        doubt: Callable[[], bool] = lambda: True, least: Callable[[], float] = lambda: 0.0,
        *, sure: bool = True,
    ) -> None:  # fmt: skip
        self._items, self._limit, self._beyond, self._doubt = items, limit, beyond, doubt
        self._ask, self._least, self._sure = holds, least, sure
        self._known: dict[frozenset[int], bool] = {}
        few = len(items) <= _SMALL
        self._swaps = _TRIES * len(items) if few else len(items) // _TRIES

    def run(self) -> Choice:
        """The cheapest set that was found."""
        everything = frozenset(range(len(self._items)))
        kept = self._enough(cheapest(self._items))
        if kept is None:
            return Choice(None, False, len(self._known))
        kept, minimal = self._needed(kept)
        for slack in _BEYOND:
            tried = cheapest(self._items, slack)
            hopeless = self._square(tried) * self._least() > _HOPELESS and tried not in self._known
            if hopeless or tried == kept or self._cost(tried) >= self._cost(kept) or not tried < everything:
                continue
            if self._holds(tried):
                kept, minimal = self._needed(tried)
        better = self._cheaper(kept) if self._doubt() else None
        while better is not None:
            kept, minimal = self._needed(better)
            better = self._cheaper(kept)
        clear = sum(1 for k in kept if minimal and kept - {k} not in self._known)
        return Choice(kept, minimal, len(self._known), clear)

    def _enough(self, kept: frozenset[int]) -> frozenset[int] | None:
        """A set that holds: with more of what is worst for its cost, twice as much each time."""
        rest = sorted((k for k in range(len(self._items)) if k not in kept), key=self._worth)
        added = 0
        while not self._holds(kept | frozenset(rest[:added])):
            if added >= len(rest) or not self._may():
                return None
            added = min(len(rest), max(1, 2 * added))
        if added <= 1:
            return kept | frozenset(rest[:added])
        low, high = added // 2, added
        while high - low > 1 and self._may():
            middle = (low + high) // 2
            low, high = (low, middle) if self._holds(kept | frozenset(rest[:middle])) else (middle, high)
        return kept | frozenset(rest[:high])

    def _needed(self, kept: frozenset[int]) -> tuple[frozenset[int], bool]:
        """Leave out what is not needed, what saves the most first; whether nothing is left that could be."""
        while True:
            before = kept
            for k in sorted(kept, key=lambda k: (-self._items[k].cost, self._worst(k))):
                less = kept - {k}
                believed = self._sure or not self._doubt()
                if less not in self._known and believed and self._square(less) > self._beyond:
                    continue
                if less not in self._known and not self._may():
                    return kept, False
                if self._holds(less):
                    kept = less
            if kept == before:
                return kept, True

    def _may(self) -> bool:
        return len(self._known) < self._limit

    def _holds(self, kept: frozenset[int]) -> bool:
        if kept not in self._known:
            self._known[kept] = self._ask(kept)
        return self._known[kept]

    def _square(self, kept: frozenset[int]) -> float:
        """What is predicted of the worst output, over the bound's square."""
        left = [item.squares for k, item in enumerate(self._items) if k not in kept]
        return max(map(sum, zip(*left, strict=True)), default=0.0)

    def _cheaper(self, kept: frozenset[int]) -> frozenset[int] | None:
        """A cheaper set that holds, up to three nodes less and one other more, the likeliest first; None if there is
        none as far as was tried.
        """
        cost, others = self._cost(kept), [k for k in range(len(self._items)) if k not in kept]
        found = {
            kept.difference(gone) | frozenset(come)
            for size in (1, 2, 3)
            for gone in combinations(sorted(kept), size)
            for come in ((), *((k,) for k in others))
            if self._cost(come) < self._cost(gone) * (1 - 1e-9)
        } if len(kept) <= _MANY else set()  # fmt: skip
        left = {tried: self._square(tried) for tried in found if tried not in self._known and self._cost(tried) < cost}
        for tried in sorted(left, key=lambda each: (left[each], sorted(each))):
            if self._swaps <= 0 or not self._may():
                return None
            self._swaps -= 1
            if self._holds(tried):
                return tried
        return None

    def _cost(self, kept: Iterable[int]) -> float:
        return sum(self._items[k].cost for k in kept)

    def _worst(self, k: int) -> float:
        return max(self._items[k].squares, default=0.0)

    def _worth(self, k: int) -> float:
        return -self._worst(k) / max(self._items[k].cost, 1e-12)
