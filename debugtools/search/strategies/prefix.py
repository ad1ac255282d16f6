"""Reduce by single cuts, as Polygraphy's `debug reduce` does: first the outputs, then the inputs.

Phase "outputs" makes one node's outputs the only outputs and looks for the earliest node that still fails; phase
"inputs" takes what that node needs and makes one node's inputs the only inputs, to find the latest that still fails.
"bisect" halves between the ends (and takes the whole for failing); "linear" tries every cut.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, floor, log2
from typing import Literal

from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs

Mode = Literal["bisect", "linear"]
Phase = Literal["outputs", "inputs"]
Before = Callable[[int], Sequence[int]]
After = Callable[[Sequence[int], int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class PrefixResult:
    """best: the nodes of the smallest failing cut so far (all nodes: none failed); outputs, inputs: the nodes that
    the graph was cut at (None: not cut there).
    """

    best: tuple[int, ...]
    outputs: int | None
    inputs: int | None


class PrefixReduce:
    """Polygraphy's bisect and linear reduction over `n` nodes in topological order.

    before(i): the nodes that node i needs, itself included, ascending (default: all up to i).
    after(base, i): the nodes of `base` that stay when node i's inputs become the graph's (default: from i on).
    phases: which of the two to do. width: how many linear cuts to offer at once.
    """

    def __init__(
        self,
        n: int,
        mode: Mode = "bisect",
        *,
        before: Before | None = None,
        after: After | None = None,
        phases: Sequence[Phase] = ("outputs", "inputs"),
        width: int = 1,
    ) -> None:
        self._n, self._before, self._after = n, before or _up_to, after or _from
        self._mode, self._width = mode, width if mode == "linear" else 1
        self._waiting = [phase for phase in phases if n]
        self._cuts: list[_Cuts] = []
        self._advance()

    def ask(self) -> list[Candidate]:
        return [] if self.done else [self._candidate(index) for index in self._cuts[-1].open()[: self._width]]

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        if self.done or candidate.phase != self._cuts[-1].phase or candidate.position is None:
            return
        cuts = self._cuts[-1]
        index = next((index for index in cuts.open() if cuts.base[index] == candidate.position), None)
        if index is None:
            return
        cuts.tell(index, verdict, self._nodes(index))
        if cuts.done:
            self._advance()

    @property
    def done(self) -> bool:
        return not self._cuts or self._cuts[-1].done

    def progress(self) -> Progress:
        left = 0 if self.done else self._cuts[-1].remaining
        later = sum(_checks(len(self._base()), self._mode) for _ in self._waiting)
        return Progress(sum(len(cuts.told) for cuts in self._cuts), left + later)

    def band(self) -> Band:
        failed = any(cuts.best for cuts in self._cuts)
        states: list[BandState] = ["good"] * self._n
        for position in self._cuts[-1].suspected() if self._cuts else ():
            states[position] = "bad" if failed else "unknown"
        for cuts in self._cuts:
            for index, verdict in cuts.told.items():
                if verdict is Verdict.SKIP:
                    states[cuts.base[index]] = "skipped"
        for candidate in self.ask():
            states[candidate.position or 0] = "asked"
        return runs(states)

    def result(self) -> PrefixResult:
        cut = {cuts.phase: cuts.base[cuts.best_index] for cuts in self._cuts if cuts.best}
        return PrefixResult(self._base(), cut.get("outputs"), cut.get("inputs"))

    def _base(self) -> tuple[int, ...]:
        """The nodes of the smallest failing cut so far."""
        return next((cuts.best for cuts in reversed(self._cuts) if cuts.best), tuple(range(self._n)))

    def _advance(self) -> None:
        if self._waiting:
            self._cuts.append(_Cuts(self._waiting.pop(0), self._base(), self._mode))

    def _nodes(self, index: int) -> tuple[int, ...]:
        cuts = self._cuts[-1]
        position = cuts.base[index]
        return tuple(self._before(position) if cuts.phase == "outputs" else self._after(cuts.base, position))

    def _candidate(self, index: int) -> Candidate:
        cuts = self._cuts[-1]
        position = cuts.base[index]
        return Candidate(f"{cuts.phase}:{position}", self._nodes(index), cuts.phase, position)


@dataclass
class _Cuts:
    """One phase: cuts at indices of `base`, from its end (outputs) or its start (inputs)."""

    phase: Phase
    base: tuple[int, ...]
    mode: Mode
    told: dict[int, Verdict] = field(default_factory=dict)
    best: tuple[int, ...] = ()
    best_index: int = -1

    def __post_init__(self) -> None:
        n = len(self.base)
        self._good, self._bad = (0, n) if self.phase == "outputs" else (n, 0)
        self._middle = n // 2

    def open(self) -> list[int]:
        """The indices to be judged, first the first."""
        if self.mode == "bisect":
            return [] if self.done else [self._middle]
        order = range(len(self.base))
        return [i for i in (reversed(order) if self.phase == "outputs" else order) if i not in self.told]

    def tell(self, index: int, verdict: Verdict, nodes: tuple[int, ...]) -> None:
        self.told[index] = verdict
        bad = verdict is Verdict.BAD
        if bad and (not self.best or self._rank(nodes, index) <= self._rank(self.best, self.best_index)):
            self.best, self.best_index = nodes, index
        if self.mode == "bisect":
            self._step(index, bad)

    def _step(self, index: int, bad: bool) -> None:
        if bad:
            self._bad = index
        else:
            self._good = index
        self._middle = (floor if bad else ceil)((self._good + self._bad) / 2)

    def _rank(self, nodes: tuple[int, ...], index: int) -> tuple[int, int]:
        """Of equally small cuts the one that comes later wins: as told (bisect), as ordered (linear)."""
        later = 0 if self.mode == "bisect" else index if self.phase == "outputs" else -index
        return len(nodes), later

    @property
    def done(self) -> bool:
        if self.mode == "linear":
            return len(self.told) == len(self.base)
        return bool(self.told) and abs(self._good - self._bad) <= 1

    @property
    def remaining(self) -> int:
        return max(_checks(len(self.base), self.mode) - len(self.told), 0 if self.done else 1)

    def suspected(self) -> Sequence[int]:
        """The nodes that the cuts so far have not cleared."""
        if self.mode == "linear":
            return self.best or self.base
        low, high = sorted((self._good, self._bad))
        return self.base[low : high + 1]


def _up_to(position: int) -> Sequence[int]:
    return range(position + 1)


def _from(base: Sequence[int], position: int) -> Sequence[int]:
    return base[bisect_left(base, position) :]


def _checks(n: int, mode: Mode) -> int:
    return n if mode == "linear" else ceil(log2(n)) if n > 1 else n
