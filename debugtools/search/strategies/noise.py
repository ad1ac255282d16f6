"""Two models of verdicts that may be wrong: rates that are known, and rates with a Beta prior.

A hypothesis f says that positions f, f + 1, … are bad. Given how many verdicts of each kind fell before f and from f
on, a model gives the hypothesis's log likelihood, and how often "bad" would be the next verdict on either side.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_NEVER = 1e-300


@dataclass(frozen=True, slots=True)
class Tally:
    """Verdicts before and from each hypothesis on, one entry per hypothesis."""

    bad_before: Ints
    good_before: Ints
    bad_after: Ints
    good_after: Ints


class Noise(Protocol):
    """How verdicts come about."""

    def log_likelihood(self, tally: Tally) -> Floats: ...

    def bad_rates(self, tally: Tally) -> tuple[Floats, Floats]:
        """P(the next verdict is bad) before and from each hypothesis on; each of length 1 or one per hypothesis."""
        ...


@dataclass(frozen=True, slots=True)
class KnownNoise:
    """false_good: P(good) where it is bad; false_bad: P(bad) where it is good (0: a bad verdict is proof)."""

    false_good: float
    false_bad: float

    def log_likelihood(self, tally: Tally) -> Floats:
        rates = np.array([self.false_bad, 1 - self.false_bad, 1 - self.false_good, self.false_good])
        logs = np.log(np.maximum(rates, _NEVER))
        counts = (tally.bad_before, tally.good_before, tally.bad_after, tally.good_after)
        return np.asarray(sum(log * count for log, count in zip(logs, counts, strict=True)), np.float64)

    def bad_rates(self, tally: Tally) -> tuple[Floats, Floats]:
        return np.array([self.false_bad]), np.array([1 - self.false_good])


_GRID = (np.arange(24) + 0.5) / 48
"""Rates of wrong verdicts, below one half: more often wrong than right could not be told from good swapped for bad."""


@dataclass(frozen=True, slots=True)
class UnknownNoise:
    """Rates that nobody knows: on either side all rates of wrong verdicts below one half are equally likely beforehand.

    They are integrated out on a grid, so a hypothesis that needs odd rates to explain the verdicts pays for them.
    """

    def log_likelihood(self, tally: Tally) -> Floats:
        before, _ = self._side(tally.bad_before, tally.good_before)
        after, _ = self._side(tally.good_after, tally.bad_after)
        return before + after

    def bad_rates(self, tally: Tally) -> tuple[Floats, Floats]:
        _, before = self._side(tally.bad_before, tally.good_before)
        _, after = self._side(tally.good_after, tally.bad_after)
        return before, 1 - after

    @staticmethod
    def _side(wrong: Ints, right: Ints) -> tuple[Floats, Floats]:
        """log P(these verdicts), and the expected rate of wrong ones given them."""
        rates, others = np.log(_GRID), np.log1p(-_GRID)
        logs = np.outer(wrong, rates) + np.outer(right, others)
        top = logs.max(axis=1)
        terms = np.exp(logs - top[:, None])
        total = terms.sum(axis=1)
        return top + np.log(total), terms @ _GRID / total
