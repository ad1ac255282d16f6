"""Reads accuracy results from Polygraphy's JSON (the classes write themselves)."""

from collections.abc import Callable
from typing import Any

from layerwise._tool.backends.results.accuracy import (
    METRICS,
    SIMPLE_FIELDS,
    AccuracyResult,
    AccuracyResults,
    Metric,
    MetricResult,
    MetricThreshold,
    SimpleResult,
    SimpleThreshold,
)

Fields = dict[str, object]


def _number(value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{str(value)[:60]!r} is not a number")
    return float(value)


def _limit(value: Any) -> float:
    number = _number(value)
    if number is None:
        raise ValueError("a threshold without a number")
    return number


def _simple_threshold(fields: Fields) -> SimpleThreshold:
    stat = fields["check_error_stat"]
    if not isinstance(stat, str):
        raise ValueError("check_error_stat is not text")
    return SimpleThreshold(stat, _limit(fields["atol"]), _limit(fields["rtol"]))


def _simple_result(fields: Fields) -> SimpleResult:
    threshold, stored = fields["thresholds"], fields.get("passed")
    if not isinstance(threshold, SimpleThreshold) or not isinstance(stored, bool | None):
        raise ValueError("an OutputCompareResult without thresholds")
    return SimpleResult({name: _number(fields[name]) for name in SIMPLE_FIELDS}, threshold, stored)


def _threshold_of(metric: Metric) -> Callable[[Fields], MetricThreshold]:
    return lambda fields: MetricThreshold(metric, _limit(fields["threshold"]))


def _result_of(metric: Metric) -> Callable[[Fields], MetricResult]:
    def decode(fields: Fields) -> MetricResult:
        threshold = fields["thresholds"]
        if not isinstance(threshold, MetricThreshold) or threshold.metric is not metric:
            raise ValueError(f"a {metric.result_class} without its threshold")
        return MetricResult(_number(fields[metric.field]), threshold)

    return decode


def _accuracy_result(fields: Fields) -> AccuracyResult:
    aggregation = fields.get("aggregation", "per_sample")
    if not isinstance(aggregation, str) or aggregation not in ("per_sample", "average"):
        raise ValueError("unknown aggregation")
    result = AccuracyResult(aggregation=aggregation)
    for (first, second), iterations in _listed(fields):
        if not isinstance(first, str) or not isinstance(second, str):
            raise ValueError("a pair of runners is not two names")
        result.pairs[first, second] = [_outputs(outputs) for outputs in iterations]
    return result


def _listed(fields: Fields) -> list[Any]:
    found = fields["lst"]
    if not isinstance(found, list):
        raise ValueError("lst is not a list")
    return found


def _outputs(outputs: Any) -> dict[str, SimpleResult | MetricResult | bool]:
    if not isinstance(outputs, dict):
        raise ValueError("an iteration is not a dict of outputs")
    if not all(isinstance(result, SimpleResult | MetricResult | bool) for result in outputs.values()):
        raise ValueError("an output's result is of no known kind")
    return outputs


def _accuracy_results(fields: Fields) -> AccuracyResults:
    if not all(isinstance(result, AccuracyResult) for result in _listed(fields)):
        raise ValueError("AccuracyResults holds something else than AccuracyResult")
    return AccuracyResults(_listed(fields))


DECODERS: dict[str, Callable[[Fields], Any]] = {
    "SimpleThreshold": _simple_threshold,
    "OutputCompareResult": _simple_result,
    "AccuracyResult": _accuracy_result,
    "AccuracyResults": _accuracy_results,
    **{metric.threshold_class: _threshold_of(metric) for metric in METRICS.values()},
    **{metric.result_class: _result_of(metric) for metric in METRICS.values()},
}
