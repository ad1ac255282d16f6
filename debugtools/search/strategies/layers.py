"""Precision by layers, as Polygraphy's `debug precision` does: the first or last k nodes are kept in FP32.

"bisect" begins with all of them and halves; "linear" begins with none and keeps one more each time.
"""

from dataclasses import dataclass, field
from math import ceil, floor, log2
from typing import Literal

from layerwise._tool.debugtools.search.strategies.precision import PrecisionResult
from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs

Direction = Literal["forward", "reverse"]


@dataclass
class LayerSearch:
    """n nodes in topological order; forward keeps the first ones, reverse the last."""

    n: int
    mode: Literal["bisect", "linear"] = "bisect"
    direction: Direction = "forward"
    _told: dict[int, Verdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._count: int | None = self.n if self.mode == "bisect" else 0
        self._good, self._bad = self.n + 1, 0

    def ask(self) -> list[Candidate]:
        return [] if self._count is None else [self._candidate(self._count)]

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        if self._count is None or candidate.key != self._candidate(self._count).key:
            return
        self._told[self._count] = verdict
        if verdict is Verdict.GOOD:
            self._good = self._count
        else:
            self._bad = self._count
        self._count = self._next(self._count)

    @property
    def done(self) -> bool:
        return self._count is None

    def progress(self) -> Progress:
        if self._count is None:
            return Progress(len(self._told), 0)
        left = ceil(log2(max(2, self._good - self._bad))) if self.mode == "bisect" else self.n - self._count + 1
        return Progress(len(self._told), left)

    def band(self) -> Band:
        states: list[BandState] = ["unknown" if self._good > self.n else "good"] * self.n
        for position in self._kept(self._good) if self._good <= self.n else ():
            states[position] = "bad"
        return runs(states)

    def result(self) -> PrecisionResult:
        return PrecisionResult(self._kept(self._good) if self._good <= self.n else None, False)

    def _next(self, count: int) -> int | None:
        if self.mode == "linear":
            return None if self._good <= self.n or count == self.n else count + 1
        middle = (self._good + self._bad) / 2
        following = floor(middle) if self._good == count else ceil(middle)
        return None if following == count or self._good - self._bad <= 1 or following > self.n else following

    def _kept(self, count: int) -> tuple[int, ...]:
        return tuple(range(count) if self.direction == "forward" else range(self.n - count, self.n))

    def _candidate(self, count: int) -> Candidate:
        return Candidate(f"{self.direction}:{count}", self._kept(count), position=None)
