"""Accuracy results: metrics of comparisons, thresholds, and verdicts; in Polygraphy's JSON.

A verdict is derived from the metrics and the thresholds, except for the element-wise check, which stores it.
"""

import os
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown

CLASS = "polygraphy_class"
STATS = ("max", "mean", "median", "quantile")
SIMPLE_FIELDS = tuple(f"{stat}_{kind}" for stat in STATS for kind in ("absdiff", "reldiff"))


class Metric(Struct, frozen=True):
    """A metric with one number per output: its label, and whether larger is better."""

    name: str
    field: str
    label: str
    result_class: str
    threshold_class: str
    more_is_better: bool
    default: float
    unit: str = ""


METRICS = {
    m.name: m
    for m in (
        Metric("l2", "l2_norm", "L2 Norm", "L2Result", "L2Threshold", False, 1e-5),
        Metric(
            "cosine_similarity", "cosine_similarity", "Cosine Similarity", "CosineSimilarityResult",
            "CosineSimilarityThreshold", True, 0.997,
        ),
        Metric("psnr", "psnr", "PSNR", "PsnrResult", "PsnrThreshold", True, 30.0, " dB"),
        Metric("snr", "snr", "SNR", "SnrResult", "SnrThreshold", True, 20.0, " dB"),
        Metric(
            "perceptual_metrics", "lpips", "LPIPS", "PerceptualMetricsResult", "LpipsThreshold", False, 0.1
        ),
    )
}  # fmt: skip


class SimpleThreshold(Struct, frozen=True):
    """Absolute and relative tolerance on a statistic of the differences; meeting either one is enough."""

    stat: str = "elemwise"
    atol: float = 1e-5
    rtol: float = 1e-5

    def to_json(self) -> dict[str, Any]:
        """Polygraphy's fields."""
        return {"check_error_stat": self.stat, "atol": self.atol, "rtol": self.rtol, CLASS: "SimpleThreshold"}


class MetricThreshold(Struct, frozen=True):
    """The maximum (or, if larger is better, the minimum) allowed for a metric."""

    metric: Metric
    value: float

    def to_json(self) -> dict[str, Any]:
        """Polygraphy's fields."""
        return {"threshold": self.value, CLASS: self.metric.threshold_class}


class SimpleResult(Struct, frozen=True):
    """Statistics of the absolute and relative differences of one output (Polygraphy's OutputCompareResult).

    values: by the names of SIMPLE_FIELDS; None if not computed.
    stored: the verdict of an element-wise check, None if it follows from the statistics.
    """

    values: dict[str, float | None]
    threshold: SimpleThreshold = SimpleThreshold()
    stored: bool | None = None

    @property
    def passed(self) -> bool:
        """Return the verdict. UsageError if the statistic to check was not saved."""
        if self.stored is not None:
            return self.stored
        stat = self.threshold.stat
        if stat not in STATS:
            raise UsageError(f"a saved {stat!r} check cannot be repeated: choose one of {', '.join(STATS)}")
        found = self.values.get(f"{stat}_absdiff"), self.values.get(f"{stat}_reldiff")
        if found[0] is None or found[1] is None:
            raise UsageError(f"the saved results have no {stat!r} statistic: choose another, or compare anew")
        return found[0] <= self.threshold.atol or found[1] <= self.threshold.rtol

    def to_json(self) -> dict[str, Any]:
        """Polygraphy's fields."""
        fields: dict[str, Any] = {name: self.values.get(name) for name in SIMPLE_FIELDS}
        return {**fields, "thresholds": self.threshold, "passed": self.stored, CLASS: "OutputCompareResult"}


class MetricResult(Struct, frozen=True):
    """One metric of one output. A value of None (not computable) never passes."""

    value: float | None
    threshold: MetricThreshold

    @property
    def passed(self) -> bool:
        """Return the verdict; NaN fails."""
        if self.value is None:
            return False
        if self.threshold.metric.more_is_better:
            return self.value >= self.threshold.value
        return self.value <= self.threshold.value

    def to_json(self) -> dict[str, Any]:
        """Polygraphy's fields."""
        metric = self.threshold.metric
        return {metric.field: self.value, "thresholds": self.threshold, CLASS: metric.result_class}


Result = SimpleResult | MetricResult | bool
Pair = tuple[str, str]


def passed(result: Result) -> bool:
    """Return the verdict of any kind of result; a bare bool (a shape mismatch, indices) is its own."""
    return result if isinstance(result, bool) else result.passed


class AccuracyResult(Struct):
    """Results of one comparison function: per pair of runners, per iteration, per output."""

    pairs: dict[Pair, list[dict[str, Result]]] = field(default_factory=dict)
    aggregation: str = "per_sample"

    @property
    def passed(self) -> bool:
        """True if every output of every iteration passed (or every average, if aggregated so), and there is one."""
        return not self.bare() and not self.failed

    @property
    def failed(self) -> bool:
        """True if an output of an iteration failed (or an average, if aggregated so)."""
        if self.aggregation == "average":
            return not all(passed(result) for pair in self.pairs for result in self.average(pair).values())
        return not all(map(passed, self._results()))

    def _results(self) -> Iterator[Result]:
        for iterations in self.pairs.values():
            for outputs in iterations:
                yield from outputs.values()

    def bare(self) -> list[str]:
        """Return sentences about pairs without results, hence without verdict; none if every pair has one."""
        if not self.pairs:
            return ["no pair of runners was compared"]
        return [
            f"nothing was compared of {shown(first, 80)} and {shown(second, 80)}"
            for (first, second), iterations in self.pairs.items()
            if not any(iterations)
        ]

    def gaps(self) -> Iterator[str]:
        """Return sentences about outputs that some iterations of a pair have results for, and others not."""
        for iterations in self.pairs.values():
            names = dict.fromkeys(name for outputs in iterations for name in outputs)
            for name in names:
                missing = [str(number) for number, outputs in enumerate(iterations) if name not in outputs]
                if missing:
                    more = f" and {len(missing) - 5} more" if len(missing) > 5 else ""
                    yield f"not compared: {shown(name, 120)}: not in iteration {', '.join(missing[:5])}{more}"

    def stats(self, pair: Pair) -> tuple[int, int, int]:
        """Return the numbers of passed, failed and all iterations."""
        iterations = self.pairs[pair]
        matched = sum(all(map(passed, outputs.values())) for outputs in iterations)
        return matched, len(iterations) - matched, len(iterations)

    def average(self, pair: Pair) -> dict[str, Result]:
        """Return each output's metrics averaged over the iterations, with its thresholds.

        UsageError if an iteration has no number to average (a shape mismatch).
        """
        names = {name: None for outputs in self.pairs[pair] for name in outputs}
        return {name: _averaged(name, [o[name] for o in self.pairs[pair] if name in o]) for name in names}

    def to_json(self) -> dict[str, Any]:
        """Polygraphy's fields."""
        items = [[list(pair), iterations] for pair, iterations in self.pairs.items()]
        return {"lst": items, "aggregation": self.aggregation, CLASS: "AccuracyResult"}


def _averaged(name: str, results: list[Result]) -> Result:
    first = results[0]
    if isinstance(first, SimpleResult) and all(isinstance(r, SimpleResult) for r in results):
        each = [result.values for result in results if isinstance(result, SimpleResult)]
        values = {name: _mean([values.get(name) for values in each]) for name in SIMPLE_FIELDS}
        return replace(first, values=values, stored=None)
    if isinstance(first, MetricResult) and all(isinstance(r, MetricResult) for r in results):
        return replace(first, value=_mean([r.value for r in results if isinstance(r, MetricResult)]))
    raise UsageError(f"output {shown(name, 80)}: an iteration has no metrics to average (a shape mismatch?)")


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


class AccuracyResults(Struct):
    """One AccuracyResult per comparison function."""

    results: list[AccuracyResult] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """True if all of them passed, and there is at least one."""
        return bool(self.results) and all(result.passed for result in self.results)

    def bare(self) -> list[str]:
        """Return sentences about missing results, hence no verdict."""
        if not self.results:
            return ["nothing was compared: there are no results"]
        return list(dict.fromkeys(text for result in self.results for text in result.bare()))

    def to_json(self) -> dict[str, Any]:
        """Polygraphy's fields."""
        return {"lst": self.results, CLASS: "AccuracyResults"}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save them as JSON that Polygraphy reads."""
        from layerwise._tool.backends.formats.json_format import save

        save(path, self)
