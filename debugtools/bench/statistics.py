"""Latency statistics as trtexec computes them, and whether one run is faster than another, in words.

The statistics follow TensorRT's samples/common/sampleReporting.cpp. Neighbouring iterations are not independent
(clocks, caches, other programs), so each run is split into at most 50 consecutive batches, whose medians are compared:
by a bootstrap of the ratio of their medians (Efron and Tibshirani, percentile interval) and by the Mann-Whitney U test
with the normal approximation and the correction for ties.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from layerwise._tool.debugtools.bench.rows import ComparisonRow, Statistics

Floats = NDArray[np.float64]


def percentile(ordered: Floats, percent: float) -> float:
    """Return the value of sorted `ordered` that `percent` of all do not exceed: an element, never interpolated. Uses
    single precision like trtexec, which matters at whole numbers.
    """
    excluded = int((np.float32(1) - np.float32(percent) / np.float32(100)) * np.float32(len(ordered)))
    return float(ordered[max(len(ordered) - 1 - excluded, 0)])


def statistics(values: Sequence[float] | Floats, percents: Sequence[float]) -> Statistics:
    """The statistics of `values`, of which there must be one at least, in their unit."""
    ordered = np.sort(np.asarray(values, np.float64))
    mean = float(ordered.mean())
    shares = {f"{percent:g}": percentile(ordered, percent) for percent in percents}
    cov = float(ordered.std() / mean * 100) if mean else 0.0
    return Statistics(float(ordered[0]), float(ordered[-1]), mean, float(np.median(ordered)), shares, cov)


BATCHES = 50
FEWEST = 8
_DRAWS = 2000
_LEVEL = 0.05


@dataclass(frozen=True)
class LatencyComparison:
    """ratio: median latency over the reference's; low, high: its 95 % interval; p: Mann-Whitney, two-sided.

    verdict: faster, slower, "no difference" (none detected), or "too few" runs to decide.
    """

    ratio: float
    low: float
    high: float
    p: float
    verdict: str

    def row(self, name: str, reference: str, batch: int | UnsetType | None = UNSET) -> ComparisonRow:
        return ComparisonRow(
            name=name, reference=reference, batch=batch, **asdict(self), words=self.words(name, reference)
        )

    def words(self, name: str, reference: str) -> str:
        """Return the verdict as a sentence."""
        if self.verdict == "too few":
            return f"{name} against {reference}: too few runs to tell (at least {FEWEST} of each are needed)."
        change = (self.ratio - 1) * 100
        span = f"95 % interval {_signed(self.low)} to {_signed(self.high)}, p {_p_text(self.p)}"
        if self.verdict == "no difference":
            return f"{name} against {reference}: no difference that could be told ({_signed(self.ratio)}; {span})."
        return f"{name} is {self.verdict} than {reference} by {abs(change):.1f} % of the median latency ({span})."


def compare(values: Sequence[float] | Floats, reference: Sequence[float] | Floats) -> LatencyComparison:
    """Compare two series of latencies, each in order of measurement."""
    ours, theirs = batch_medians(values), batch_medians(reference)
    if min(len(ours), len(theirs)) < FEWEST:
        return LatencyComparison(math.nan, math.nan, math.nan, math.nan, "too few")
    middle = float(np.median(theirs))
    ratio = float(np.median(ours)) / middle if middle else math.nan
    low, high = _interval(ours, theirs)
    p = mann_whitney(ours, theirs)
    told = p < _LEVEL and not low <= 1 <= high
    return LatencyComparison(ratio, low, high, p, ("faster" if ratio < 1 else "slower") if told else "no difference")


def batch_medians(values: Sequence[float] | Floats) -> Floats:
    """Return the medians of at most 50 consecutive batches of equal length (up to a remainder)."""
    series = np.asarray(values, np.float64)
    return np.array([np.median(part) for part in np.array_split(series, min(BATCHES, len(series) or 1)) if len(part)])


def mann_whitney(a: Floats, b: Floats) -> float:
    """Return the two-sided p of the Mann-Whitney U test. Source: Hollander and Wolfe, section 4.1 (with ties)."""
    n, m = len(a), len(b)
    together = np.concatenate([a, b])
    _, inverse, counts = np.unique(together, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    u = float(ranks[:n].sum()) - n * (n + 1) / 2
    ties = float((counts**3 - counts).sum()) / ((n + m) * (n + m - 1))
    deviation = math.sqrt(max(0.0, n * m / 12 * (n + m + 1 - ties)))
    if not deviation:
        return 1.0
    z = max(0.0, abs(u - n * m / 2) - 0.5) / deviation
    return math.erfc(z / math.sqrt(2))


def _interval(a: Floats, b: Floats) -> tuple[float, float]:
    """Return the 95 % percentile interval of median(a) / median(b), with fixed random draws."""
    rng = np.random.default_rng(0)
    above = np.median(a[rng.integers(0, len(a), (_DRAWS, len(a)))], axis=1)
    below = np.median(b[rng.integers(0, len(b), (_DRAWS, len(b)))], axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = np.quantile(above / below, [_LEVEL / 2, 1 - _LEVEL / 2])
    return float(low), float(high)


def _signed(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f} %"


def _p_text(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
