"""Bisection when a verdict may be wrong: a Bayesian posterior over the first bad position.

Each question is the one that tells most about the position (Burnashev & Zigangirov's median where errors are
symmetric), and the search stops when one position has a probability of more than 1 - delta: with known error rates and
every position equally likely beforehand, the answer is then wrong with probability delta at most. It stops a little
later than it must, because the rates that one knows are seldom exact.

A hypothesis f says that positions f, f + 1, … are bad. Given how many verdicts of each kind fell before f and from f
on, a model of the noise (rates that are known, or rates with a Beta prior) gives the hypothesis's log likelihood, and
how often "bad" would be the next verdict on either side.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.debugtools.search.strategies.bisect import running_costs
from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs

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
        """P(the next verdict is bad) before and from each hypothesis on; each of length 1 or one per hypothesis."""
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


_TELLS_NOTHING = 1e-12
_MARGIN = 0.75


@dataclass(frozen=True, slots=True)
class FlakyResult:
    """first_bad: the likeliest first bad position (None: nothing is bad), and its probability. span: the positions that
    hold it with probability 1 - delta. false_good, false_bad: the error rates, given or estimated.
    """

    first_bad: int | None
    probability: float
    span: tuple[int, int]
    false_good: float
    false_bad: float
    sure: bool


class FlakyBisect:
    """Asks "do nodes 0..position fail together?" again and again.

    false_good: P(a good verdict where it is bad); false_bad: the reverse, 0 where a bad verdict is proof. None for
    either: not known, both are estimated along the way. weights: each node's expected seconds.
    """

    def __init__(
        self,
        n: int,
        false_good: float | None,
        false_bad: float | None,
        delta: float = 0.05,
        weights: Sequence[float] | None = None,
    ) -> None:
        known = false_good is not None and false_bad is not None
        self._noise = KnownNoise(false_good or 0.0, false_bad or 0.0) if known else UnknownNoise()
        self._n, self._delta = n, delta
        self._costs = None if weights is None else running_costs(weights)
        self._bad, self._good = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
        self._skipped: set[int] = set()
        self._judged = 0
        self._update()

    def ask(self) -> list[Candidate]:
        return [] if self._next is None else [self.candidate(self._next)]

    def candidate(self, position: int) -> Candidate:
        """The next trial of nodes 0..position."""
        trial = self._bad[position] + self._good[position]
        return Candidate(f"prefix:{position}#{trial}", (position,), position=position)

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        position = candidate.position
        if position is None or not 0 <= position < self._n or candidate.key != self.candidate(position).key:
            return
        if position in self._skipped:
            return
        self._judged += 1
        if verdict is Verdict.SKIP:
            self._skipped.add(position)
        else:
            (self._bad if verdict is Verdict.BAD else self._good)[position] += 1
        self._update()

    @property
    def done(self) -> bool:
        return self._next is None

    def progress(self) -> Progress:
        if self.done:
            return Progress(self._judged, 0)
        before, after = self._rates()
        gain = _entropy((before + after) / 2) - (_entropy(before) + _entropy(after)) / 2
        wanted = float(-(self._posterior * np.log2(np.maximum(self._posterior, 1e-300))).sum()) - np.log2(self._delta)
        return Progress(self._judged, max(1.0, wanted / float(gain)) if gain > _TELLS_NOTHING else None)

    def band(self) -> Band:
        low, high = self._span()
        states: list[BandState] = ["unknown"] * self._n
        states[:low] = ["good"] * low
        if self._bad.any():
            states[high:] = ["bad"] * (self._n - high)
        for position in self._skipped:
            states[position] = "skipped"
        if self._next is not None:
            states[self._next] = "asked"
        return runs(states)

    def result(self) -> FlakyResult:
        best = int(np.argmax(self._posterior))
        before, after = self._rates()
        probability = float(self._posterior[best])
        return FlakyResult(
            best if best < self._n else None,
            probability,
            self._span(),
            float(1 - after),
            float(before),
            probability >= 1 - self._delta,
        )

    def _update(self) -> None:
        self._tally = _tally(self._bad, self._good)
        logs = self._noise.log_likelihood(self._tally)
        weights = np.exp(logs - logs.max())
        self._posterior: Floats = weights / weights.sum()
        sure = self._posterior.max() >= 1 - _MARGIN * self._delta
        self._next = None if sure else self._most_telling()

    def _most_telling(self) -> int | None:
        """The position whose verdict tells most about the first bad one (per second where seconds are known)."""
        gain = information(self._posterior, *self._noise.bad_rates(self._tally))
        gain[list(self._skipped)] = 0.0
        if gain.max(initial=0.0) < _TELLS_NOTHING:
            return None
        return int(np.argmax(gain if self._costs is None else gain / (self._costs + 1e-9 * self._costs[-1])))

    def _rates(self) -> tuple[Floats, Floats]:
        """P(bad verdict) before and from the likeliest first bad position on."""
        best = int(np.argmax(self._posterior))
        before, after = (np.broadcast_to(rate, self._n + 1)[best] for rate in self._noise.bad_rates(self._tally))
        return before, after

    def _span(self) -> tuple[int, int]:
        cumulated = np.cumsum(self._posterior)
        low, high = np.searchsorted(cumulated, [self._delta / 2, 1 - self._delta / 2])
        return min(int(low), self._n), min(int(high), self._n)


def settled(bad: int, good: int, false_good: float, false_bad: float, delta: float) -> Verdict | None:
    """What one candidate is after so many verdicts on it, None while the error rates leave more than `delta` open.

    Wald's sequential test, bad and good equally likely beforehand.
    """
    with np.errstate(divide="ignore"):
        told_bad, told_good = np.log([1 - false_good, false_good]) - np.log([false_bad, 1 - false_bad])
        enough = np.log((1 - delta) / delta)
    odds = (bad * told_bad if bad else 0.0) + (good * told_good if good else 0.0)
    if abs(odds) < enough:
        return None
    return Verdict.BAD if odds > 0 else Verdict.GOOD


def information(posterior: Floats, before: Floats, after: Floats) -> Floats:
    """Expected bits about the first bad position in a verdict at each position.

    posterior: over first bad positions 0..n, n for none; before, after: P(bad verdict) under each of them.
    """
    n = len(posterior) - 1

    def mixed(left: Floats, right: Floats) -> Floats:
        """Mean over hypotheses: `right` where the position is at or after the first bad one, else `left`."""
        until = np.cumsum(posterior * right)
        later = np.cumsum((posterior * left)[::-1])[::-1]
        return np.asarray(until[:n] + later[1:])

    return _entropy(mixed(before, after)) - mixed(_entropy(before), _entropy(after))


def _tally(bad: np.ndarray, good: np.ndarray) -> Tally:
    bad_until, good_until = np.cumsum(bad), np.cumsum(good)
    bad_before, good_before = bad_until - bad, good_until - good
    return Tally(bad_before, good_before, bad_until[-1] - bad_before, good_until[-1] - good_before)


def _entropy(rate: Floats) -> Floats:
    """Bits of a verdict that is bad at this rate."""
    rate = np.clip(rate, 1e-300, 1.0)
    other = np.clip(1 - rate, 1e-300, 1.0)
    return np.asarray(-(rate * np.log2(rate) + other * np.log2(other)))
