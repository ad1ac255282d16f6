"""Opens saved data of any kind: run results, accuracy results, feed dicts."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.formats.dumps import FEEDS_FORMAT, OBSERVED, RESULTS_FORMAT, DumpReader
from layerwise._tool.backends.formats.json_format import load
from layerwise._tool.backends.formats.npy import read_npz
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
from layerwise._tool.backends.results.inference import IterationResult, RunResults, StoredOutputs, describe
from layerwise._tool.backends.wording import in_words

Fields = dict[str, object]
Kind = TypeVar("Kind")


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


_ACCURACY_DECODERS: dict[str, Callable[[Fields], Any]] = {
    "SimpleThreshold": _simple_threshold,
    "OutputCompareResult": _simple_result,
    "AccuracyResult": _accuracy_result,
    "AccuracyResults": _accuracy_results,
    **{metric.threshold_class: _threshold_of(metric) for metric in METRICS.values()},
    **{metric.result_class: _result_of(metric) for metric in METRICS.values()},
}


def iteration_files(folder: Path) -> list[Path]:
    """Return a folder's per-iteration files in order. BadFile if there is none."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise BadFile(folder, "holds no per-iteration .json files")
    return files


class DumpedArray(Struct, frozen=True):
    """One tensor of a safetensors file. array: returns it, memory-mapped."""

    dtype: str
    shape: tuple[int, ...]
    array: Callable[[], Array]


def load_results(path: str | os.PathLike[str]) -> RunResults:
    """Open results: a JSON file, a folder with one JSON file an iteration, or our .safetensors.

    No array is read yet. BadFile names the file and the reason.
    """
    return _load_kind(path, RunResults, "saved outputs (RunResults)")


def load_accuracy(path: str | os.PathLike[str]) -> AccuracyResults:
    """Read saved accuracy results. BadFile names the file and the reason."""
    return _load_kind(path, AccuracyResults, "saved accuracy results")


def _load_kind(path: str | os.PathLike[str], kind: type[Kind], words: str) -> Kind:
    loaded = load_any(Path(path))
    if not isinstance(loaded, kind):
        raise BadFile(path, f"holds {describe(loaded)}, not {words}")
    return loaded


def load_any(path: Path) -> Any:
    """Open a file or a folder of per-iteration files, without reading arrays.

    Returns RunResults, AccuracyResults, or a list of feed dicts (name -> array or Stored). BadFile says what
    is wrong with which file.
    """
    if path.is_dir():
        return _load_folder(path)
    if path.suffix == ".safetensors":
        return _load_dump(DumpReader(path))
    if path.suffix == ".npz":
        try:
            return [read_npz(path)]
        except ValueError as error:
            raise BadFile(path, in_words(error)) from None
    loaded = load_json(path)
    return [loaded] if isinstance(loaded, dict) else loaded


def load_json(path: Path) -> Any:
    """Open one of Polygraphy's JSON files."""
    return load(path, DECODERS)


def _load_folder(folder: Path) -> Any:
    loaded = [load_json(file) for file in iteration_files(folder)]
    if all(isinstance(item, RunResults) for item in loaded):
        return RunResults.concat(loaded)
    feeds: list[Any] = []
    for item in loaded:
        feeds.extend(item if isinstance(item, list) else [item])
    return feeds


def _load_dump(reader: DumpReader) -> Any:
    arrays = {
        name: DumpedArray(reader.dtype(name), reader.shape(name), partial(reader.array, name))
        for name in reader.names()
    }
    kind = reader.metadata.get("format")
    if kind not in (RESULTS_FORMAT, FEEDS_FORMAT):
        return [arrays]
    try:
        groups = _groups(arrays)
        if kind == FEEDS_FORMAT:
            return [groups.get(str(number), {}) for number in range(int(reader.metadata["iterations"]))]
        return _dumped_results(reader.metadata, groups)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise BadFile(reader.path, f"not saved results: {in_words(error, 200)}") from None


def _groups(arrays: dict[str, DumpedArray]) -> dict[str, dict[str, DumpedArray]]:
    """Split `group:name` keys."""
    groups: dict[str, dict[str, DumpedArray]] = {}
    for key, array in arrays.items():
        group, _, name = key.partition(":")
        groups.setdefault(group, {})[name] = array
    return groups


def _dumped_results(metadata: dict[str, str], groups: dict[str, dict[str, DumpedArray]]) -> RunResults:
    results = RunResults()
    notes = json.loads(metadata.get(OBSERVED, "{}"))
    for runner, (name, runtimes) in enumerate(json.loads(metadata["runners"])):
        observed = notes[runner] if notes else [""] * len(runtimes)
        iterations = [
            IterationResult(StoredOutputs(groups.get(f"{runner}.{number}", {})), runtime, str(name), str(note))
            for number, (runtime, note) in enumerate(zip(runtimes, observed, strict=True))
        ]
        results.append(str(name), iterations)
    return results


def _iteration(fields: dict[str, Any]) -> IterationResult:
    outputs, runtime, name = fields["outputs"], fields.get("runtime"), fields.get("runner_name")
    if not isinstance(outputs, dict) or any(not hasattr(value, "shape") for value in outputs.values()):
        raise ValueError("an IterationResult whose outputs are not arrays")
    if runtime is not None and not isinstance(runtime, int | float):
        raise ValueError("an IterationResult whose runtime is not a number")
    note = fields.get(OBSERVED)
    return IterationResult(StoredOutputs(outputs), runtime, *(t if isinstance(t, str) else "" for t in (name, note)))


def _run_results(fields: dict[str, Any]) -> RunResults:
    results = RunResults()
    for name, iterations in fields["lst"]:
        if not isinstance(name, str) or not all(isinstance(item, IterationResult) for item in iterations):
            raise ValueError("RunResults holds something else than runners and their iterations")
        results.append(name, iterations)
    return results


DECODERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    **_ACCURACY_DECODERS,
    "IterationResult": _iteration,
    "RunResults": _run_results,
}
