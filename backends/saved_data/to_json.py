"""Saved data as plain values for `--json`: names, types, shapes and statistics."""

from collections.abc import Mapping, Sequence
from typing import Any

from layerwise._tool.backends.results.accuracy import AccuracyResults, MetricResult, Result, SimpleResult, passed
from layerwise._tool.backends.results.inference import RunResults
from layerwise._tool.backends.saved_data.to_text import Show, read
from layerwise._tool.backends.stats import array_stats, histogram
from layerwise._tool.backends.tensors import dtype_name

Plain = dict[str, object]
_NAMES = ("median", "p90", "p95", "p99")


def results_json(results: RunResults, show: Show) -> Plain:
    """{"kind": "outputs", "runners": [{"name", "count", "iterations": [{"runtime", "tensors": […]}]}]}."""
    runners = []
    for name, iterations in results.items():
        told = iterations if show.everything else iterations[:1]
        each = [{"runtime": one.runtime, "tensors": tensors_json(one.outputs, show)} for one in told]
        runners.append({"name": name, "count": len(iterations), "iterations": each})
    return {"kind": "outputs", "runners": runners}


def feeds_json(feeds: Sequence[Mapping[str, Any]], show: Show) -> Plain:
    """{"kind": "inputs", "count", "iterations": [{"tensors": […]}]}."""
    told = feeds if show.everything else feeds[:1]
    each = [{"tensors": tensors_json(feed, show)} for feed in told]
    return {"kind": "inputs", "count": len(feeds), "iterations": each}


def tensors_json(arrays: Mapping[str, Any], show: Show) -> list[Plain]:
    """{"name", "dtype", "shape", "stats": {…} | null, and if asked for "histogram": {"counts", "edges"} | null}."""
    told = []
    for name in arrays:
        array = read(arrays[name])
        plain: Plain = {"name": name, "dtype": dtype_name(array), "shape": list(array.shape)}
        plain["stats"] = _stats(array)
        if show.histogram:
            found = histogram(array)
            plain["histogram"] = {"counts": found[0], "edges": found[1]} if found else None
        told.append(plain)
    return told


def _stats(array: Any) -> Plain | None:
    stats = array_stats(array)
    if stats is None:
        return None
    names = ("mean", "std", "var", "min", "max", "avg_magnitude")
    plain: Plain = {name: getattr(stats, name) for name in names}
    plain |= {"argmin": list(stats.argmin), "argmax": list(stats.argmax), "nan": stats.nan, "inf": stats.inf}
    return plain | dict(zip(_NAMES, stats.quantiles or (), strict=False))


def accuracy_json(results: AccuracyResults) -> Plain:
    """{"kind": "accuracy", "passed", "results": [{"aggregation", "pairs": [{"pair", "iterations": […]}]}]}."""
    told = []
    for result in results.results:
        pairs = []
        for pair, iterations in result.pairs.items():
            each = [{name: _result(found) for name, found in one.items()} for one in iterations]
            pairs.append({"pair": list(pair), "iterations": each})
        told.append({"aggregation": result.aggregation, "passed": result.passed, "pairs": pairs})
    return {"kind": "accuracy", "passed": results.passed, "results": told}


def _result(result: Result) -> Plain:
    plain: Plain = {"passed": passed(result)}
    if isinstance(result, SimpleResult):
        return plain | dict(result.values)
    if isinstance(result, MetricResult):
        return plain | {result.threshold.metric.field: result.value, "threshold": result.threshold.value}
    return plain
