"""Which candidates to keep in FP32: by additive squares first, then by trying.

The single effects' squares add up to that of a set. So the cheapest set to keep is a knapsack: what stays low must not
exceed the bound's square for any output. What it comes to is measured; where it fails more is kept, where it holds
what is needless is left out again, until no single node can be (1-minimal). Cheaper sets that are predicted just beyond
the bound are tried too, and such with other nodes in place of some (`choose_by_squares`).

Of few candidates, each measured alone, all sets are looked at instead: every set that is measured tells more about how
pairs act together, and the next is the cheapest that probably holds, until no cheaper one has a chance
(`choose_by_belief`).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from msgspec import Struct

from layerwise._tool.debugtools.search.lens.belief import Belief
from layerwise._tool.debugtools.search.lens.knapsack import Item, cheapest

FEW = 16
"""Candidates of which all sets can be looked at."""
_BEYOND = (1.02, 1.05, 1.1, 1.2)
_HOPELESS = 1.03
_MANY = 24  # nodes that are kept, beyond which no others are tried in their place
_TWO = 4  # nodes that are kept, of which two are left out at once too
_SURE = 2e-5  # the probability below which a node is not left out to see
_TRIES = 8  # so many sets a node are tried of few nodes, a set for so many nodes of many


class Choice(Struct):
    """kept: positions; minimal: no single one can be left out, of `clear` of them without measuring. tries: sets that
    were measured.
    """

    kept: frozenset[int] | None
    minimal: bool
    tries: int
    clear: int = 0


class Trying:
    """Sets that are kept in FP32, each measured once.

    ask: whether the bound is kept with a set in FP32, by measuring. limit: how often it may be asked.
    """

    def __init__(self, items: Sequence[Item], ask: Callable[[frozenset[int]], bool], limit: int) -> None:
        self.items, self._ask, self._limit = items, ask, limit
        self._known: dict[frozenset[int], bool] = {}

    def __contains__(self, kept: frozenset[int]) -> bool:
        return kept in self._known

    def may(self) -> bool:
        """Whether another set may be asked for."""
        return len(self._known) < self._limit

    def holds(self, kept: frozenset[int]) -> bool:
        if kept not in self._known:
            self._known[kept] = self._ask(kept)
        return self._known[kept]

    def cost(self, kept: Iterable[int]) -> float:
        return sum(self.items[k].cost for k in kept)

    def square(self, kept: frozenset[int]) -> float:
        """What is predicted of the worst output, over the bound's square."""
        left = [item.squares for k, item in enumerate(self.items) if k not in kept]
        return max(map(sum, zip(*left, strict=True)), default=0.0)

    def worst(self, k: int) -> float:
        return max(self.items[k].squares, default=0.0)

    def needed(self, kept: frozenset[int], fails: Callable[[frozenset[int]], bool]) -> tuple[frozenset[int], bool]:
        """Leave out what is not needed, what saves the most first; whether nothing is left that could be.

        fails: whether a set is believed to fail, so that it need not be measured.
        """
        while True:
            before = kept
            for k in sorted(kept, key=lambda k: (-self.items[k].cost, self.worst(k))):
                less = kept - {k}
                if less not in self and fails(less):
                    continue
                if less not in self and not self.may():
                    return kept, False
                if self.holds(less):
                    kept = less
            if kept == before:
                return kept, True

    def choice(self, kept: frozenset[int] | None = None, minimal: bool = False) -> Choice:
        clear = sum(1 for k in kept or () if minimal and kept and kept - {k} not in self)
        return Choice(kept, minimal, len(self._known), clear)


class Doubts(Struct, frozen=True):
    """How far predictions are believed.

    beyond: times the bound's square from which on a set that one node less is kept of is believed to fail; sure: in
    spite of doubt. doubt: whether sets that were measured are not what was predicted, so that others may be cheaper.
    least: what the squares of measured sets came to at least, over the predicted ones: a set that would be beyond the
    bound even so is not tried.
    """

    beyond: float = math.inf
    sure: bool = True
    doubt: Callable[[], bool] = lambda: True
    least: Callable[[], float] = lambda: 0.0


def choose_by_squares(tries: Trying, doubts: Doubts) -> Choice:
    """The cheapest set that was found."""

    def fails(kept: frozenset[int]) -> bool:
        return (doubts.sure or not doubts.doubt()) and tries.square(kept) > doubts.beyond

    everything = frozenset(range(len(tries.items)))
    kept = _enough(tries, cheapest(tries.items))
    if kept is None:
        return tries.choice()
    kept, minimal = tries.needed(kept, fails)
    for slack in _BEYOND:
        tried = cheapest(tries.items, slack)
        hopeless = tries.square(tried) * doubts.least() > _HOPELESS and tried not in tries
        if hopeless or tried == kept or tries.cost(tried) >= tries.cost(kept) or not tried < everything:
            continue
        if tries.holds(tried):
            kept, minimal = tries.needed(tried, fails)
    few, count = len(tries.items) <= FEW, len(tries.items)
    swaps = iter(range(_TRIES * count if few else count // _TRIES))
    better = _cheaper(tries, kept, swaps) if doubts.doubt() else None
    while better is not None:
        kept, minimal = tries.needed(better, fails)
        better = _cheaper(tries, kept, swaps)
    return tries.choice(kept, minimal)


def _enough(tries: Trying, kept: frozenset[int]) -> frozenset[int] | None:
    """A set that holds: with more of what is worst for its cost, twice as much each time."""

    def worth(k: int) -> float:
        return -tries.worst(k) / max(tries.items[k].cost, 1e-12)

    rest = sorted((k for k in range(len(tries.items)) if k not in kept), key=worth)
    added = 0
    while not tries.holds(kept | frozenset(rest[:added])):
        if added >= len(rest) or not tries.may():
            return None
        added = min(len(rest), max(1, 2 * added))
    if added <= 1:
        return kept | frozenset(rest[:added])
    low, high = added // 2, added
    while high - low > 1 and tries.may():
        middle = (low + high) // 2
        low, high = (low, middle) if tries.holds(kept | frozenset(rest[:middle])) else (middle, high)
    return kept | frozenset(rest[:high])


def _cheaper(tries: Trying, kept: frozenset[int], swaps: Iterator[int]) -> frozenset[int] | None:
    """A cheaper set that holds, up to three nodes less and one other more, the likeliest first; None if there is
    none as far as was tried. swaps: one for each set that may be tried.
    """
    cost, others = tries.cost(kept), [k for k in range(len(tries.items)) if k not in kept]
    found = {
        kept.difference(gone) | frozenset(come)
        for size in (1, 2, 3)
        for gone in combinations(sorted(kept), size)
        for come in ((), *((k,) for k in others))
        if tries.cost(come) < tries.cost(gone) * (1 - 1e-9)
    } if len(kept) <= _MANY else set()  # fmt: skip
    left = {tried: tries.square(tried) for tried in found if tried not in tries and tries.cost(tried) < cost}
    for tried in sorted(left, key=lambda each: (left[each], sorted(each))):
        if not tries.may() or next(swaps, None) is None:
            return None
        if tries.holds(tried):
            return tried
    return None


def choose_by_belief(tries: Trying, belief: Belief, doubt: Callable[[], bool], room: float = 1.0) -> Choice:
    """The cheapest set of few candidates. belief: is told each set that `tries` asks for. room: what a set may come to,
    over the bound's square; doubt: see `Doubts`.
    """

    def fails(kept: frozenset[int]) -> bool:
        return belief.chance(kept, room) < _SURE

    kept, cost, minimal = None, math.inf, False
    while True:
        while tries.may() and (tried := belief.next(cost, room)) is not None:
            if tries.holds(tried):
                kept, cost = tried, tries.cost(tried)
        if kept is None:
            return tries.choice()
        before, (kept, minimal) = kept, tries.needed(kept, fails)
        if kept == before and len(kept) <= _TWO and doubt():
            kept = _without_two(tries, kept)
        if kept == before:
            return tries.choice(kept, minimal)
        cost = tries.cost(kept)


def _without_two(tries: Trying, kept: frozenset[int]) -> frozenset[int]:
    """The set without two nodes that make up for each other, if it holds."""
    pairs = [kept.difference(gone) for gone in combinations(sorted(kept), 2)]
    for less in sorted((each for each in pairs if each not in tries), key=tries.cost):
        if tries.may() and tries.holds(less):
            return less
    return kept
