"""A small set of nodes that must stay in FP32 for the model to pass.

By predicted effect: nodes are kept in that order, twice as many until it passes, then halved to the shortest prefix
that does. What is needless among them is left out again, half of them at a time, then quarters, down to single nodes
(delta debugging by complements, as ddmin's second half): every set on the way passes, so that the search may be
stopped at any time.

By layers, as Polygraphy's `debug precision` does: the first or last k nodes are kept in FP32. "bisect" begins with all
of them and halves; "linear" begins with none and keeps one more each time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from math import ceil, floor, log2
from typing import Literal

from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs
from layerwise._tool.debugtools.search.strategies.steps import ItemSet, StepRun, Steps, ahead, bits

_PATIENCE = 4


@dataclass(frozen=True, slots=True)
class PrecisionResult:
    """kept: the smallest set found that passes, None if none was. minimal: no single node of it can be left out."""

    kept: tuple[int, ...] | None
    minimal: bool

    def band(self, n: int) -> Band:
        """The same over positions 0..n-1."""
        states: list[BandState] = ["unknown" if self.kept is None else "good"] * n
        for item in self.kept or ():
            states[item] = "bad"
        return runs(states)


@dataclass(frozen=True, slots=True)
class Scores:
    """effects: predicted effect of each node's being low, the larger the worse. start: how many are kept first."""

    effects: Sequence[float]
    start: int = 1


class PrecisionSearch:
    """Asks "does the model pass with these nodes in FP32, the others low?" about sets of positions 0..n-1.

    scores: called once it is known that something must be kept; always gives the same. limit: verdicts after which
    nothing more is left out; None: no limit. width: how many candidates to offer at once.
    """

    def __init__(self, n: int, scores: Callable[[], Scores], limit: int | None = None, width: int = 1) -> None:
        self._n, self._measure, self._limit, self._width = n, scores, limit, width
        self._told: dict[int, Verdict] = {}
        self._passing: int | None = None
        self._trail = Trail()
        self._run = StepRun(self._steps(self._trail))

    def ask(self) -> list[Candidate]:
        found = [] if self.done else ahead(self._run, lambda: StepRun(self._steps(Trail())), self._told, self._width)
        return [self._candidate(items) for items in found]

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        if not all(0 <= item < self._n for item in candidate.items):
            return
        mask = sum(1 << item for item in set(candidate.items))
        if mask in self._told:
            return
        self._told[mask] = verdict
        smaller = self._passing is None or mask.bit_count() < self._passing.bit_count()
        if verdict is Verdict.GOOD and smaller:
            self._passing = mask
        self._run.go_on(self._told)

    @property
    def done(self) -> bool:
        spent = self._limit is not None and len(self._told) >= self._limit and self._trail.enough
        return self._run.next_set is None or spent

    def progress(self) -> Progress:
        return Progress(len(self._told), 0 if self.done else self._trail.left)

    def band(self) -> Band:
        return self.result().band(self._n)

    def result(self) -> PrecisionResult:
        if self._passing is None:
            return PrecisionResult(None, False)
        return PrecisionResult(tuple(bits(self._passing)), self._passing in self._trail.minimal)

    def _candidate(self, items: ItemSet) -> Candidate:
        key = blake2b(items.mask.to_bytes(self._n // 8 + 1, "little"), digest_size=10).hexdigest()
        return Candidate(key, tuple(bits(items.mask)))

    def _steps(self, trail: "Trail") -> Steps[None]:
        """The empty set first: it may be that nothing needs to be kept."""
        trail.left = 2 * log2(self._n + 1) + 1
        if (yield ItemSet(0)) is Verdict.GOOD:
            trail.minimal.add(0)
            return
        enough = yield from self._prefix(trail)
        trail.enough = True
        if enough:
            yield from _needed(enough, self._scores.effects, trail)

    def _prefix(self, trail: "Trail") -> Steps[int]:
        """The shortest prefix of the ranking that passes where the one before does not; 0 if nothing passes."""
        low, high, size = 0, self._n + 1, max(1, min(self._scores.start, self._n))
        while high - low > 1:
            trail.left = log2(high - low) + 1
            if (yield ItemSet(self._first(size))) is Verdict.GOOD:
                high = size
            else:
                low = size
            size = min(2 * low, self._n) if high > self._n else high // 2 if low == 0 else (low + high) // 2
        return self._first(high) if high <= self._n else 0

    def _first(self, size: int) -> int:
        return sum(1 << item for item in self._rank[:size])

    @cached_property
    def _scores(self) -> Scores:
        return self._measure()

    @cached_property
    def _rank(self) -> list[int]:
        effects = self._scores.effects
        return sorted(range(self._n), key=lambda item: (-effects[item], item))


@dataclass
class Trail:
    """enough: a passing prefix was found, or there is none. minimal: sets that passed and no smaller ones beside them.
    left: questions that it may still take.
    """

    enough: bool = False
    minimal: set[int] = field(default_factory=set)
    left: float = 0.0


def _needed(passing: int, scores: Sequence[float], trail: Trail) -> Steps[None]:
    """Leave out what is not needed, ever smaller pieces, until no single item can be left out.

    Pieces are neighbours in the graph; those of the least predicted effect are tried first, and larger ones no further
    after a few in a row were needed.
    """
    size = max(1, passing.bit_count() // 2)
    while True:
        before, failed = passing, 0
        pieces = _pieces(bits(passing), size, scores)
        for number, piece in enumerate(pieces):
            if size > 1 and failed == _PATIENCE:
                break
            less = passing & ~piece
            trail.left = len(pieces) - number + (0 if size == 1 else passing.bit_count())
            if less and (yield ItemSet(less)) is Verdict.GOOD:
                passing, failed = less, 0
            else:
                failed += 1
        if size == 1 and passing == before:
            trail.minimal.add(passing)
            return
        size = max(1, min(size // 2, passing.bit_count() // 2))


def _pieces(items: Sequence[int], size: int, scores: Sequence[float]) -> list[int]:
    """Masks of `size` items each, the least predicted effect first."""
    cut = [items[at : at + size] for at in range(0, len(items), size)]
    cut.sort(key=lambda piece: sum(scores[item] ** 2 for item in piece))
    return [sum(1 << item for item in piece) for piece in cut]


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
        return self.result().band(self.n)

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
