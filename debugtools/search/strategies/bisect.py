"""Bisection over prefixes: the first position from which on a model fails."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from layerwise._tool.debugtools.search.strategies.costs import running_costs, spread
from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs


@dataclass(frozen=True, slots=True)
class BisectResult:
    """first_bad: the earliest position told bad, None if there is none; last_good: the last one told good before it, -1
    if there is none. skipped: positions between them that could not be judged: any of them may be the first.
    monotone: no position after first_bad was told good.
    """

    first_bad: int | None
    last_good: int
    skipped: tuple[int, ...]
    monotone: bool


class BisectSearch:
    """Asks "do nodes 0..position fail together?"; the whole, position n - 1, is asked only if all else passes.

    weights: each node's expected seconds: a question costs those of all its nodes. ways: how many to ask at once.
    """

    def __init__(self, n: int, weights: Sequence[float] | None = None, ways: int = 1) -> None:
        self._n, self._ways = n, ways
        self._costs = None if weights is None else running_costs(weights)
        self._told: dict[int, Verdict] = {}

    @staticmethod
    def candidate(position: int) -> Candidate:
        """The question about nodes 0..position."""
        return Candidate(f"prefix:{position}", (position,), position=position)

    def ask(self) -> list[Candidate]:
        low, high = self._ends()
        skipped = [position for position in range(low + 1, high) if position in self._told]
        if not skipped:
            return [self.candidate(position) for position in spread(low, high, self._ways, self._costs)]
        chosen: list[int] = []
        for _ in range(min(self._ways, high - low - 1 - len(skipped))):
            chosen.append(_beside(low, high, sorted([*skipped, *chosen])))
        return [self.candidate(position) for position in chosen]

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        position = candidate.position
        if position is not None and 0 <= position < self._n:
            self._told.setdefault(position, verdict)

    @property
    def done(self) -> bool:
        low, high = self._ends()
        return all(position in self._told for position in range(low + 1, high))

    def progress(self) -> Progress:
        low, high = self._ends()
        left = sum(position not in self._told for position in range(low + 1, high))
        return Progress(len(self._told), left.bit_length())

    def band(self) -> Band:
        low, high = self._ends()
        states: list[BandState] = ["unknown"] * self._n
        states[: low + 1] = ["good"] * (low + 1)
        states[high:] = ["bad"] * (self._n - high)
        for position, verdict in self._told.items():
            if verdict is Verdict.SKIP:
                states[position] = "skipped"
        for candidate in self.ask():
            states[candidate.items[0]] = "asked"
        return runs(states)

    def result(self) -> BisectResult:
        low, high = self._ends()
        skipped = tuple(position for position in range(low + 1, high) if position in self._told)
        monotone = all(position < high for position in self._positions(Verdict.GOOD))
        return BisectResult(high if high < self._n else None, low, skipped, monotone)

    def _ends(self) -> tuple[int, int]:
        high = min(self._positions(Verdict.BAD), default=self._n)
        return max((position for position in self._positions(Verdict.GOOD) if position < high), default=-1), high

    def _positions(self, verdict: Verdict) -> list[int]:
        return [position for position, told in self._told.items() if told is verdict]


def _beside(low: int, high: int, skipped: Sequence[int]) -> int:
    """A position between `low` and `high` that is likely off the stretch that cannot be judged.

    It halves the wider side of all that was skipped; where both sides are used up, the widest gap within.
    """
    widest = max((low, skipped[0]), (skipped[-1], high), key=_width)
    if _width(widest) < 2:
        widest = max(pairwise(skipped), key=_width)
    return sum(widest) // 2


def _width(gap: tuple[int, int]) -> int:
    return gap[1] - gap[0]


class HintedBisect(BisectSearch):
    """guess: the likely first bad position, None: there is none. It and the one before it are asked first."""

    def __init__(self, n: int, weights: Sequence[float] | None = None, ways: int = 1, guess: int | None = None) -> None:
        super().__init__(n, weights, ways)
        self._guesses = [] if guess is None else [place for place in (guess, guess - 1) if 0 <= place < n]

    def ask(self) -> list[Candidate]:
        low, high = self._ends()
        open_guesses = [place for place in self._guesses if low < place < high and place not in self._told]
        if open_guesses and not (self._told and high == self._n):  # the first guess was good: it was wrong
            return [self.candidate(place) for place in open_guesses[: self._ways]]
        return super().ask()
