"""Delta debugging: all independent minimal sets of nodes that fail, few checks, several at once.

`reduce_steps` says how; this keeps the verdicts, and turns sets of items into candidates.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs
from layerwise._tool.debugtools.search.strategies.reduce_steps import ReduceSteps
from layerwise._tool.debugtools.search.strategies.steps import ItemSet, StepRun, ahead, bits


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
