"""What a search is: it asks about candidates, is told verdicts, and says at any time what is known.

A search is a deterministic function of its constructor's arguments and of the sequence of tells: telling the same
again replays it, and an undo is a new search told all but the last.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, Protocol, TypeVar

from layerwise._tool.backends.older_python import StrEnum

BandState = Literal["good", "bad", "unknown", "skipped", "asked"]
Band = list[tuple[BandState, int]]
R_co = TypeVar("R_co", covariant=True)


class Verdict(StrEnum):
    """good: the fault is not seen; bad: it is; skip: cannot be judged (does not build, or unsure)."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One question. `key` is unique within a search and a function of the verdicts so far.

    items: what is asked about: nodes kept (reduce), the last suspect node (bisect), nodes kept in FP32 (precision),
    nothing (repeat). phase: "outputs", "inputs" or "". position: where the cut is, for the band.
    """

    key: str
    items: tuple[int, ...]
    phase: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Verdicts told so far and the further ones expected (None: unknown)."""

    judged: int
    remaining: float | None


class Search(Protocol[R_co]):
    """An algorithm that asks for verdicts."""

    def ask(self) -> list[Candidate]:
        """What may be judged now, most useful first; none when done or while answers are awaited."""
        ...

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        """Takes an answer. A candidate that is unknown, answered or no longer of use is ignored."""
        ...

    @property
    def done(self) -> bool:
        """Whether nothing is left to ask."""
        ...

    def progress(self) -> Progress: ...

    def band(self) -> Band:
        """Runs of states over positions 0..n-1; the lengths sum to n.

        Of a bisection: how a cut there comes out. Of other searches: "bad" means that the node is still suspected.
        """
        ...

    def result(self) -> R_co:
        """What is known now."""
        ...


def runs(states: Iterable[BandState]) -> Band:
    """Run-length form of one state per position."""
    return [(state, sum(1 for _ in group)) for state, group in groupby(states)]
