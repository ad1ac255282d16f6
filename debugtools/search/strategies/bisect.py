"""Bisection over prefixes: the first position from which on a model fails.

Where to ask next between a good and a bad end, when asking costs differently in different places: exact optimal trees
cost O(n^2) or more. The rule here looks one question ahead and takes the rest to cost what halving would, at the
interval's mean price: within a few percent of the optimum, while halving by index, which is exact for equal costs, can
cost 1.8 times as much.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs

Costs = NDArray[np.float64]


def running_costs(weights: Sequence[float] | Costs) -> Costs:
    """The cost of asking about each prefix: of the items up to each one."""
    return np.cumsum(np.asarray(weights, np.float64))


def split(low: int, high: int, costs: Costs | None = None) -> int:
    """The position strictly between `low` and `high` to ask next. costs[i]: cost of asking at i; None: all equal."""
    if costs is None or high - low < 3:
        return (low + high) // 2
    at = np.arange(low + 1, high)
    left, right = at - low, high - at
    before = np.concatenate(([0.0], np.cumsum(costs[low + 1 : high])))
    mean_left = before[:-1] / np.maximum(left - 1, 1)
    mean_right = (before[-1] - before[1:]) / np.maximum(right - 1, 1)
    later = (left * np.log2(left) * mean_left + right * np.log2(right) * mean_right) / (high - low)
    return int(at[np.argmin(costs[low + 1 : high] + later)])


def spread(low: int, high: int, ways: int, costs: Costs | None = None) -> list[int]:
    """Up to `ways` positions strictly between `low` and `high` to ask at once, the most telling first."""
    length = high - low
    if length < 2:
        return []
    middle = split(low, high, costs)
    bend = log((middle - low) / length) / log(0.5) if length > 2 else 1.0
    inner = {low + round(length * (part / (ways + 1)) ** bend) for part in range(1, ways + 1)} if ways > 1 else {middle}
    clamped = {min(max(position, low + 1), high - 1) for position in inner}
    return sorted(clamped, key=lambda position: (abs(position - middle), position))


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
