"""Saved data as text in the layout of Polygraphy's `inspect data`, and as plain values for `--json`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.formats.json_arrays import as_array
from layerwise._tool.backends.results.accuracy import (
    AccuracyResult,
    AccuracyResults,
    MetricResult,
    Result,
    SimpleResult,
    passed,
)
from layerwise._tool.backends.results.inference import RunResults, Stored
from layerwise._tool.backends.stats import array_stats, histogram, histogram_text, stats_text
from layerwise._tool.backends.tensors import dtype_name, format_array
from layerwise._tool.backends.text import shown

TAB = "    "
Plain = dict[str, object]
_NAMES = ("median", "p90", "p95", "p99")


@dataclass(frozen=True)
class Show:
    """What to show: all iterations, values, histograms; items at each end, and characters per line."""

    everything: bool = False
    values: bool = False
    histogram: bool = False
    num_items: int = 3
    line_width: int = 75


def results_lines(results: RunResults, show: Show) -> Iterator[str]:
    """Yield the description of run results, line by line."""
    yield f"==== Run Results ({len(results)} runners) ===="
    yield ""
    width = max(map(len, results.keys()), default=0)
    for name, iterations in results.items():
        yield f"---- {shown(name):<{width}} ({len(iterations)} iterations) ----"
        yield from _iterations([result.outputs for result in iterations], show)


def feeds_lines(feeds: Sequence[Mapping[str, Any]], show: Show) -> Iterator[str]:
    """Yield the description of inputs, line by line."""
    yield f"==== Data ({len(feeds)} iterations) ===="
    yield from _iterations(feeds, show)


def _iterations(iterations: Sequence[Mapping[str, Any]], show: Show) -> Iterator[str]:
    numbered = show.everything and len(iterations) > 1
    for number, arrays in enumerate(iterations if show.everything else iterations[:1]):
        yield ""
        if numbered:
            yield f"-- Iteration: {number}"
        for name in arrays:
            yield from _tensor(name, arrays[name], show, numbered)
    if numbered:
        yield ""


def _tensor(name: str, value: Any, show: Show, numbered: bool) -> Iterator[str]:
    array = read(value)
    before = TAB if numbered else ""
    shape = tuple(array.shape)
    yield f"{before}{shown(name)} [dtype={dtype_name(array)}, shape={shape}] | Stats: {stats_text(array)}"
    blocks = [histogram_text(array)] if show.histogram else []
    if show.values:
        blocks.append(format_array(array, show.num_items, show.line_width))
    for block in blocks:
        yield from (before + TAB + line for line in block.split("\n"))


def read(value: Any) -> Array:
    """Return an array of saved data, decoded."""
    return value.array() if isinstance(value, Stored) else as_array(value)


def accuracy_lines(results: AccuracyResults, show: Show) -> Iterator[str]:
    """Yield the description of accuracy results, line by line."""
    yield f"==== Accuracy Results ({len(results.results)} comparison(s)) ===="
    for result in results.results:
        yield ""
        yield f"---- Aggregation: {result.aggregation} ----"
        for pair in result.pairs:
            yield ""
            yield from _pair(result, pair, show)


def _pair(result: AccuracyResult, pair: tuple[str, str], show: Show) -> Iterator[str]:
    matched, _, total = result.stats(pair)
    yield f"{shown(pair[0])} vs. {shown(pair[1])} | {matched}/{total} iteration(s) matched"
    iterations = result.pairs[pair]
    for number, outputs in enumerate(iterations if show.everything else iterations[:1]):
        yield f"{TAB}-- Iteration: {number}"
        for name, output in outputs.items():
            verdict = "PASSED" if passed(output) else "FAILED"
            yield f"{TAB}{TAB}{shown(name)} | {verdict}{_metrics(output)}"


def _metrics(result: Result) -> str:
    if isinstance(result, SimpleResult):
        values: Mapping[str, float | None] = result.values
    elif isinstance(result, MetricResult):
        values = {result.threshold.metric.field: result.value}
    else:
        return ""
    told = ", ".join(f"{name}={value:.5g}" for name, value in values.items() if value is not None)
    return f" | {told}" if told else ""


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
