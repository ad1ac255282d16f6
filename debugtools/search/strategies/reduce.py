"""Delta debugging: all independent minimal sets of nodes that fail, few checks, several at once.

Sets are bit masks. A failing set is made smaller by boundaries: the shortest failing prefix of what is left, beside
what is needed already, ends with one more needed item (Hildebrandt & Zeller's chop, QuickXplain's background). Every
boundary lies between a set that was told bad and one that was told not bad, so no step takes the predicate for
monotone. What is needed alone is then tried without each of its items, until no removal fails: 1-minimal.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil, log2

import numpy as np

from layerwise._tool.debugtools.search.strategies.bisect import Costs, running_costs, split
from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs
from layerwise._tool.debugtools.search.strategies.steps import ItemSet, StepRun, Steps, ahead, bits

_GALLOP = 4


@dataclass
class Trail:
    """What the steps have come to. open: the failing set in hand; left: questions that it may still take."""

    found: list[int] = field(default_factory=list)
    open: int = 0
    left: float = 0.0
    exhausted: bool = False


@dataclass
class ReduceSteps:
    """weights: each item's cost, None for equal ones; hints: items to try alone, first the likeliest."""

    n: int
    weights: Costs | None
    hints: Sequence[int]
    trail: Trail = field(default_factory=Trail)

    def all_sets(self) -> Steps[None]:
        """Finds one minimal failing set after another in what the ones before have left."""
        rest, hints, passed = (1 << self.n) - 1, list(self.hints), 0
        self.trail.left = log2(self.n) + 3 if self.n else 0
        while rest:
            passes = bool(self.trail.found) and not (yield from self._fails(rest))
            smallest = yield from self._alone(rest, hints)  # even in a rest that passes: what fails alone may not show
            if passes and not smallest:
                return
            if not smallest:
                if not (yield from self._fails(rest)):
                    return
                smallest, passed = yield from self._minimal(rest, passed)
            self.trail.found.append(smallest)
            rest, self.trail.open, self.trail.left = rest & ~smallest, 0, 1
            passed = 0 if passed & smallest else passed
        self.trail.exhausted, self.trail.left = True, 0

    def _fails(self, rest: int) -> Steps[bool]:
        """Whether what is left fails; the search is over if it does not."""
        verdict = yield ItemSet(rest)
        if verdict is Verdict.BAD:
            self._hold(rest, log2(rest.bit_count()) + 2)
            return True
        self.trail.exhausted, self.trail.left = verdict is Verdict.GOOD, 0
        return False

    def _alone(self, rest: int, hints: list[int]) -> Steps[int]:
        """The next hint that fails alone, 0 if none does. Gives up once hints have cost what a search does."""
        for _ in range(ceil(log2(self.n)) + 1):
            while hints and not rest >> hints[0] & 1:
                hints.pop(0)
            if not hints:
                return 0
            mask = 1 << hints.pop(0)
            if (yield ItemSet(mask, mask.bit_length() - 1)) is Verdict.BAD:
                return mask
        hints.clear()
        return 0

    def _minimal(self, failing: int, passed: int) -> Steps[tuple[int, int]]:
        """A 1-minimal subset of `failing`, and the longest prefix of `failing` found not to fail.

        passed: a prefix of `failing` that is known not to fail.
        """
        needed, first = 0, True
        while not needed or (yield ItemSet(needed)) is not Verdict.BAD:
            failing, item, below = yield from self._boundary(failing, needed, passed if first else 0)
            passed = below if first else passed
            needed, first = needed | item, False
        return (yield from self._certified(needed)), passed

    def _boundary(self, failing: int, needed: int, passed: int) -> Steps[tuple[int, int, int]]:
        """The shortest failing prefix found of `failing` beside `needed`, its last item, and what is before that."""
        pool = bits(failing & ~needed)
        costs = None if self.weights is None else running_costs(np.append(0.0, self.weights[pool]))
        low, high, stride = passed.bit_count(), len(pool), 1

        def prefix(count: int) -> int:
            return needed | failing & ((1 << pool[count - 1] + 1) - 1) if count else needed

        while high - low > 1:
            galloping = bool(needed and stride)
            middle = max(high - stride, low + 1) if galloping else split(low, high, costs)
            self._hold(prefix(high), log2(high - low) + 2)
            if (yield ItemSet(prefix(middle), pool[middle - 1])) is Verdict.BAD:
                high, stride = middle, stride * _GALLOP
            else:
                low, stride = middle, 0
        self._hold(prefix(high), 2)
        return prefix(high), 1 << pool[high - 1], prefix(low)

    def _certified(self, failing: int) -> Steps[int]:
        """`failing`, or less of it, such that no single removal fails."""
        tried = 0
        while failing & ~tried and failing.bit_count() > 1:
            open_items = failing & ~tried
            item = open_items & -open_items
            self._hold(failing, open_items.bit_count() + 1)
            if (yield ItemSet(failing & ~item)) is Verdict.BAD:
                failing, tried = failing & ~item, 0
            else:
                tried |= item
        return failing

    def _hold(self, failing: int, left: float) -> None:
        self.trail.open, self.trail.left = failing, left


@dataclass(frozen=True, slots=True)
class ReduceResult:
    """sets: disjoint failing sets, each certified: removing any single item made it pass or skip.
    best: the smallest set that failed so far (all items: none yet); certified: it is one of `sets`.
    exhausted: what is left beside `sets` was told good, or nothing is left.
    """

    sets: tuple[tuple[int, ...], ...]
    best: tuple[int, ...]
    certified: bool
    exhausted: bool


class ReduceSearch:
    """Which subsets of `items` (positions of nodes) fail?

    weights: each item's expected seconds. hints: items that are likely to fail alone, the likeliest first.
    width: how many candidates to offer at once. The empty set is never asked. Any verdict on a subset is
    welcome, asked for or not; it makes no assumption that more nodes fail more.
    """

    def __init__(
        self,
        items: Sequence[int],
        weights: Sequence[float] | None = None,
        hints: Sequence[int] = (),
        width: int = 1,
    ) -> None:
        self._items = tuple(sorted(set(items)))
        self._index = {item: index for index, item in enumerate(self._items)}
        cost = dict(zip(items, weights, strict=True)) if weights is not None else {}
        self._costs = np.array([cost[item] for item in self._items]) if cost else None
        self._hints = [self._index[item] for item in hints if item in self._index]
        self._width = width
        self._told: dict[int, Verdict] = {}
        self._passed = 0
        self._best = (1 << len(self._items)) - 1
        steps = self._steps()
        self._trail = steps.trail
        self._run = StepRun(steps.all_sets())

    def ask(self) -> list[Candidate]:
        found = ahead(self._run, lambda: StepRun(self._steps().all_sets()), self._told, self._width)
        return [self._candidate(items) for items in found]

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        mask = self._mask(candidate.items)
        if not mask or mask in self._told:
            return
        self._told[mask] = verdict
        if verdict is Verdict.GOOD:
            self._passed |= mask
        if verdict is Verdict.BAD and mask.bit_count() < self._best.bit_count():
            self._best = mask
        self._run.go_on(self._told)

    @property
    def done(self) -> bool:
        return self._run.next_set is None

    def progress(self) -> Progress:
        return Progress(len(self._told), self._trail.left)

    def band(self) -> Band:
        states: list[BandState] = ["good"] * (self._items[-1] + 1 if self._items else 0)
        suspected = sum(self._trail.found) | self._trail.open
        for index, item in enumerate(self._items):
            states[item] = self._state(1 << index, suspected)
        for candidate in self.ask():
            if candidate.position is not None:
                states[candidate.position] = "asked"
        return runs(states)

    def result(self) -> ReduceResult:
        found = self._trail.found
        sets = tuple(self._positions(mask) for mask in found)
        return ReduceResult(sets, self._positions(self._best), self._best in found, self._trail.exhausted)

    def _state(self, bit: int, suspected: int) -> BandState:
        if suspected & bit:
            return "bad"
        if self._passed & bit:
            return "good"
        return "skipped" if bit in self._told else "unknown"

    def _steps(self) -> ReduceSteps:
        return ReduceSteps(len(self._items), self._costs, self._hints)

    def _candidate(self, items: ItemSet) -> Candidate:
        key = blake2b(items.mask.to_bytes(len(self._items) // 8 + 1, "little"), digest_size=10).hexdigest()
        cut = None if items.cut is None else self._items[items.cut]
        return Candidate(key, self._positions(items.mask), position=cut)

    def _positions(self, mask: int) -> tuple[int, ...]:
        return tuple(self._items[index] for index in bits(mask))

    def _mask(self, items: Iterable[int]) -> int:
        """The set as bits; 0 if it is empty or not all of it is this search's."""
        flags = bytearray(len(self._items) // 8 + 1)
        for item in items:
            if (index := self._index.get(item)) is None:
                return 0
            flags[index // 8] |= 1 << index % 8
        return int.from_bytes(flags, "little")
