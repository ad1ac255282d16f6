"""The same thing over and over, until it is good, bad, counted, or its failure rate is known well enough.

With a uniform prior the posterior of the rate is Beta(1 + failures, 1 + passes), and P(rate < x) is a binomial tail.
"""

from dataclasses import dataclass
from math import exp, lgamma, log, log1p
from typing import Literal

from layerwise._tool.debugtools.search.strategies.protocol import Band, BandState, Candidate, Progress, Verdict, runs


def below(x: float, a: int, b: int) -> float:
    """P(rate < x) for rate ~ Beta(a, b), a and b positive whole numbers: P(Binomial(a + b - 1, x) >= a)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    n = a + b - 1
    if a > x * n:
        return _tail(n, x, range(a, n + 1))
    return 1.0 - _tail(n, x, range(a - 1, -1, -1))


def quantile(probability: float, a: int, b: int) -> float:
    """The x with P(rate < x) = probability, to about 1e-12."""
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle, a, b) < probability else (low, middle)
    return (low + high) / 2


def _tail(n: int, x: float, counts: range) -> float:
    """Sum of the Binomial(n, x) terms at `counts`, which fall from the first on."""
    term = exp(_log_term(n, counts[0], x)) if counts else 0.0
    total, ratio = 0.0, x / (1.0 - x)
    for k in counts:
        total += term
        if term < total * 1e-17:
            break
        term *= (n - k) / (k + 1) * ratio if counts.step > 0 else k / (n - k + 1) / ratio
    return min(total, 1.0)


def _log_term(n: int, k: int, x: float) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(x) + (n - k) * log1p(-x)


@dataclass(frozen=True, slots=True)
class Confidence:
    """Stop once P(failure rate < rate), or its opposite, is at least 1 - delta (uniform prior)."""

    rate: float
    delta: float = 0.05


Until = Literal["good", "bad"] | int | Confidence


@dataclass(frozen=True, slots=True)
class RepeatResult:
    """Counts, and the interval that the failure rate lies in with probability 1 - delta.

    below: P(failure rate < the rate asked about), None if none was. statement: the same in words.
    """

    good: int
    bad: int
    skipped: int
    interval: tuple[float, float]
    below: float | None
    statement: str


class RepeatSearch:
    """Asks for one trial after another. until: a verdict, a number of trials, or a confidence. width: trials at once.

    Trials that cannot be judged count towards a number of trials, not towards a rate.
    """

    def __init__(self, until: Until, width: int = 1) -> None:
        self._until, self._width = until, width
        self._told: dict[int, Verdict] = {}

    def ask(self) -> list[Candidate]:
        if self.done:
            return []
        limit = self._until if isinstance(self._until, int) else len(self._told) + self._width + 1
        upcoming = [trial for trial in range(limit) if trial not in self._told]
        return [Candidate(f"trial:{trial}", ()) for trial in upcoming[: self._width]]

    def tell(self, candidate: Candidate, verdict: Verdict) -> None:
        kind, _, number = candidate.key.partition(":")
        if kind == "trial" and number.isdecimal() and not self.done:
            self._told.setdefault(int(number), verdict)

    @property
    def done(self) -> bool:
        if isinstance(self._until, int):
            return len(self._told) >= self._until
        if isinstance(self._until, Confidence):
            return self._sure(self._until.delta)
        return Verdict(self._until) in self._told.values()

    def progress(self) -> Progress:
        judged = len(self._told)
        if self.done:
            return Progress(judged, 0)
        return Progress(judged, self._until - judged if isinstance(self._until, int) else None)

    def band(self) -> Band:
        """Runs of verdicts over the trials so far."""
        states: dict[Verdict, BandState] = {Verdict.GOOD: "good", Verdict.BAD: "bad", Verdict.SKIP: "skipped"}
        return runs(states[self._told[trial]] for trial in sorted(self._told))

    def result(self) -> RepeatResult:
        delta = self._until.delta if isinstance(self._until, Confidence) else 0.05
        bad, good = self._count(Verdict.BAD), self._count(Verdict.GOOD)
        interval = quantile(delta / 2, 1 + bad, 1 + good), quantile(1 - delta / 2, 1 + bad, 1 + good)
        below_rate = self._below if isinstance(self._until, Confidence) else None
        statement = f"{bad} of {bad + good} trials failed; " + self._claim(delta, interval)
        if not bad + good:
            statement = f"nothing was judged: all {len(self._told)} trials were skipped"
        return RepeatResult(good, bad, self._count(Verdict.SKIP), interval, below_rate, statement)

    def _claim(self, delta: float, interval: tuple[float, float]) -> str:
        if isinstance(self._until, Confidence) and self.done:
            side = "below" if self._below >= 0.5 else "not below"
            sure = max(self._below, 1 - self._below)
            return f"the failure rate is {side} {self._until.rate:g} with probability {sure:.4f}"
        return f"the failure rate is between {interval[0]:.3g} and {interval[1]:.3g} with probability {1 - delta:g}"

    def _sure(self, delta: float) -> bool:
        """Whether the rate is on one side of the one asked about; the prior alone, with no such trial, is no proof."""
        low, high = self._count(Verdict.GOOD) > 0, self._count(Verdict.BAD) > 0
        return (low and self._below >= 1 - delta) or (high and 1 - self._below >= 1 - delta)

    @property
    def _below(self) -> float:
        assert isinstance(self._until, Confidence)
        return below(self._until.rate, 1 + self._count(Verdict.BAD), 1 + self._count(Verdict.GOOD))

    def _count(self, verdict: Verdict) -> int:
        return sum(told is verdict for told in self._told.values())
