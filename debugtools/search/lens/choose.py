"""Which candidates to keep in FP32: by additive squares first, then by trying.

The single effects' squares add up to that of a set. So the cheapest set to keep is a knapsack: what stays low must not
exceed the bound's square for any output. What it comes to is measured; where it fails more is kept, where it holds
what is needless is left out again, until no single node can be (1-minimal). Cheaper sets that are predicted just beyond
the bound are tried too, and such with other nodes in place of some.

Of few candidates, each measured alone, all sets are looked at instead: every set that is measured tells more about how
pairs act together, and the next is the cheapest that probably holds, until no cheaper one has a chance (`Belief`).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from types import MappingProxyType

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_STEPS = 2000
_BEYOND = (1.02, 1.05, 1.1, 1.2)
_HOPELESS = 1.03
_MANY = 24  # nodes that are kept, beyond which no others are tried in their place
_PAIR, _MORE = 0.3, 0.02
_MOST = 1e12  # times the bound's square; what is beyond is as hopeless
_FEW = 4  # nodes that are kept, of which two are left out at once too
_CHANCE, _SURE = 0.02, 2e-5  # probabilities below which a set is not tried, a node is not left out to see
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


class Belief:
    """What all sets of a few candidates come to on one output, by those that were measured.

    The square of a set is the sum of its members' and, of each pair, twice the root of both times a number that is not
    known (normally distributed, spread `_PAIR`); what more than two do together is noise (`_MORE` of the sum).
    """

    def __init__(self, items: Sequence[Item]) -> None:
        count = len(items)
        alone = np.array([item.squares[0] for item in items])
        self._kept = (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(np.bool_)
        self._costs = self._kept @ np.array([item.cost for item in items])
        must = ~np.isfinite(alone)
        self._open: NDArray[np.bool_] = np.all(self._kept[:, must], axis=1)
        low = (~self._kept & ~must).astype(np.float32)
        squares = np.where(must, 0.0, np.minimum(alone, _MOST)).astype(np.float32)
        one, other = np.triu_indices(count, 1)
        self._pairs = low[:, one] * low[:, other] * (2 * _PAIR * np.sqrt(squares[one] * squares[other]))
        sums = (low @ squares).astype(np.float64)
        self._rest = (_MORE * sums) ** 2 + 1e-12
        self._mean, self._spread = sums, np.einsum("ij,ij->i", self._pairs, self._pairs, dtype=np.float64)
        self._parts: list[NDArray[np.float32]] = []

    def learn(self, kept: frozenset[int], square: float | None, *, judged: bool) -> None:
        """A set was measured; square: over the bound's, None: it is not finite. judged: it need not be asked for."""
        at = _place(kept)
        self._open[at] &= not judged
        if square is None:
            return
        together = self._pairs @ self._pairs[at]
        for part in self._parts:
            together -= part * part[at]
        size = math.sqrt(max(float(together[at]), 0.0) + self._rest[at])
        told = together / np.float32(size)
        self._mean += told * ((min(square, _MOST) - self._mean[at]) / size)
        self._spread -= np.square(told, dtype=np.float64)
        self._parts.append(told)

    def next(self, cost: float, room: float) -> frozenset[int] | None:
        """The set to measure next, of those that cost less: the cheapest that probably comes to `room` at most, else
        what promises most; None where no set has a chance.
        """
        sets = np.flatnonzero(self._open & (self._costs < cost - 1e-9 * self._costs[-1]))
        chance = self._chance(sets, room)
        sets, chance = sets[chance >= _CHANCE], chance[chance >= _CHANCE]
        if not sets.size:
            return None
        probable = np.flatnonzero(chance >= 0.5)
        if probable.size:
            first = probable[np.lexsort((-chance[probable], self._costs[sets[probable]]))[0]]
        else:
            first = np.argmax(chance * (min(cost, float(self._costs[-1])) - self._costs[sets]))
        return frozenset(map(int, np.flatnonzero(self._kept[sets[first]])))

    def chance(self, kept: frozenset[int], room: float) -> float:
        """How probable it is that a set that was not measured comes to `room` at most."""
        at = _place(kept)
        return float(self._chance(np.array([at]), room)[0]) if self._open[at] else 0.0

    def _chance(self, sets: NDArray[np.int64], room: float) -> NDArray[np.float64]:
        spread = np.maximum(self._spread[sets], 0) + self._rest[sets]
        far = (room - self._mean[sets]) / np.sqrt(2 * spread)
        return np.array([0.5 + 0.5 * math.erf(each) for each in far])


def _place(kept: Iterable[int]) -> int:
    return sum(1 << k for k in kept)


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
    not tried. square: of a set that was asked for, over the bound's (None: not finite), where few candidates were all
    measured alone and have one output; told: sets whose squares are known; room: that a set may come to.
    """

    def __init__(
        self, items: Sequence[Item], holds: Callable[[frozenset[int]], bool], limit: int, beyond: float = math.inf,
        doubt: Callable[[], bool] = lambda: True, least: Callable[[], float] = lambda: 0.0,
        *, sure: bool = True, square: Callable[[frozenset[int]], float | None] | None = None,
        told: Mapping[frozenset[int], float | None] = MappingProxyType({}), room: float = 1.0,
    ) -> None:  # fmt: skip
        self._items, self._limit, self._beyond, self._doubt = items, limit, beyond, doubt
        self._ask, self._least, self._sure = holds, least, sure
        self._known: dict[frozenset[int], bool] = {}
        few = len(items) <= _SMALL
        self._square_of, self._room = square, room
        one = all(len(item.squares) == 1 for item in items)
        self._belief = belief = Belief(items) if square is not None and few and one else None
        if belief is not None:
            for kept, known in told.items():
                belief.learn(kept, known, judged=False)
        self._swaps = _TRIES * len(items) if few else len(items) // _TRIES

    def run(self) -> Choice:
        """The cheapest set that was found."""
        if self._belief is not None:
            return self._believed(self._belief)
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

    def _believed(self, belief: Belief) -> Choice:
        kept, cost, minimal = None, math.inf, False
        while True:
            while self._may() and (tried := belief.next(cost, self._room)) is not None:
                if self._holds(tried):
                    kept, cost = tried, self._cost(tried)
            if kept is None:
                return Choice(None, False, len(self._known))
            before, (kept, minimal) = kept, self._needed(kept)
            if kept == before and len(kept) <= _FEW and self._doubt():
                kept = self._without_two(kept)
            if kept == before:
                clear = sum(1 for k in kept if minimal and kept - {k} not in self._known)
                return Choice(kept, minimal, len(self._known), clear)
            cost = self._cost(kept)

    def _without_two(self, kept: frozenset[int]) -> frozenset[int]:
        """The set without two nodes that make up for each other, if it holds."""
        pairs = [kept.difference(gone) for gone in combinations(sorted(kept), 2)]
        fewer = [less for less in pairs if less not in self._known]
        for less in sorted(fewer, key=self._cost):
            if self._may() and self._holds(less):
                return less
        return kept

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
                if less not in self._known and self._fails(less):
                    continue
                if less not in self._known and not self._may():
                    return kept, False
                if self._holds(less):
                    kept = less
            if kept == before:
                return kept, True

    def _fails(self, kept: frozenset[int]) -> bool:
        """Whether a set is believed to fail, so that it need not be measured."""
        if self._belief is not None:
            return self._belief.chance(kept, self._room) < _SURE
        return (self._sure or not self._doubt()) and self._square(kept) > self._beyond

    def _may(self) -> bool:
        return len(self._known) < self._limit

    def _holds(self, kept: frozenset[int]) -> bool:
        if kept not in self._known:
            self._known[kept] = self._ask(kept)
            if self._belief is not None and self._square_of is not None:
                self._belief.learn(kept, self._square_of(kept), judged=True)
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
