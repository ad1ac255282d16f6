"""Bisection over prefixes: the first position from which on a model fails."""

from collections.abc import Sequence
from dataclasses import dataclass

from debugtools.search.costs import running_costs, spread
from debugtools.search.protocol import Band, BandState, Candidate, Progress, Verdict, runs


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
        open_positions = [position for position in range(low + 1, high) if position not in self._told]
        skipped = max(high - low - 1, 0) - len(open_positions)
        chosen: list[int] = []
        for ideal in spread(low, high, self._ways, self._costs):
            if open_positions:
                chosen.append(_near(ideal, open_positions, skipped) if skipped else ideal)
                open_positions.remove(chosen[-1])
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


def _near(ideal: int, positions: list[int], skipped: int) -> int:
    """A position near `ideal`; the more were skipped the farther, to get off a stretch that cannot be judged."""
    ordered = sorted(positions, key=lambda position: (abs(position - ideal), position))
    return ordered[min((1 << min(skipped, 30)) - 1, len(ordered) - 1)]
