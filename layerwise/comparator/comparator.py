"""Running runners on the same inputs, and comparing what they gave."""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.feeds.fit import fit_feed
from layerwise._tool.backends.feeds.sources import save_feeds
from layerwise._tool.backends.filesystem.folders import whole_folder
from layerwise._tool.backends.text import shown
from layerwise.backend.base import BaseRunner
from layerwise.common import TensorMetadata
from layerwise.comparator.accuracy import AccuracyResults
from layerwise.comparator.compare import SimpleCompareFunc
from layerwise.comparator.data_loader import DataLoader
from layerwise.comparator.pairs import Accuracy, CompareFunction, default_comparisons, merged
from layerwise.comparator.struct import IterationResult, RunResults
from layerwise.logger import G_LOGGER

Stream = Iterator[RunResults]
Results = RunResults | Iterable[RunResults]


class Comparator:
    """Runs, checks and compares."""

    @staticmethod
    def run(
        runners: Sequence[BaseRunner],
        data_loader: Any = None,
        warm_up: int | None = None,
        use_subprocess: bool | None = None,
        subprocess_timeout: int | None = None,
        subprocess_polling_interval: int | None = None,
        save_inputs_path: str | None = None,
        save_outputs_path: str | None = None,
        save_input_blob_path: str | None = None,
        streaming: bool | None = None,
    ) -> Any:
        """Run every runner on all inputs, one runner after the other; with `streaming` all at once, iteration by
        iteration, as a generator of single-iteration results.

        data_loader: an iterable of feed dicts; a DataLoader by default. use_subprocess is accepted: isolation from
        crashes is what `layerwise run` is for. Saved files are JSON that Polygraphy reads.
        """
        loader = DataLoader() if data_loader is None else data_loader
        stream = _stream(runners, loader, save_inputs_path, save_outputs_path)
        if streaming:
            return stream
        if use_subprocess:
            G_LOGGER.warning("use_subprocess: runners run in this process")
        feeds = _Feeds(loader)
        results = RunResults([_run_one(runner, feeds, warm_up or 0) for runner in runners])
        if save_inputs_path is not None:
            save_feeds(save_inputs_path, feeds.taken)
        if save_outputs_path is not None:
            results.save(save_outputs_path)
        if save_input_blob_path is not None:
            _save_blobs(save_input_blob_path, feeds.taken)
        return results

    @staticmethod
    def postprocess(run_results: Any, postprocess_func: Callable[[IterationResult], IterationResult]) -> Any:
        """Results, a stream, or a list of them with every iteration changed by `postprocess_func`."""
        if isinstance(run_results, list | tuple):
            return [Comparator.postprocess(each, postprocess_func) for each in run_results]
        if isinstance(run_results, RunResults):
            return RunResults((name, [postprocess_func(it) for it in its]) for name, its in run_results)
        return (Comparator.postprocess(single, postprocess_func) for single in run_results)

    @staticmethod
    def default_comparisons(run_results: RunResults) -> list[tuple[int, int]]:
        """Each runner with the next one."""
        return default_comparisons(run_results)

    @staticmethod
    def compare_accuracy(
        run_results: Results | Sequence[Results],
        fail_fast: bool | None = None,
        comparisons: Sequence[tuple[int, int]] | None = None,
        compare_func: CompareFunction | Sequence[CompareFunction] | None = None,
        check_average: bool | None = None,
    ) -> AccuracyResults:
        """Compare pairs of runners, each with the next by default, with one or several functions.

        run_results: results, a stream of them, or several of either, whose runners are then compared together.
        """
        functions = _listed(compare_func) or [SimpleCompareFunc()]
        return Accuracy(functions, comparisons, bool(fail_fast), bool(check_average)).compare(merged(run_results))

    @staticmethod
    def validate(
        run_results: RunResults,
        check_inf: bool | None = None,
        check_nan: bool | None = None,
        fail_fast: bool | None = None,
    ) -> bool:
        """Whether no output holds NaN (nor Inf, with `check_inf`)."""
        valid = True
        for name, iterations in run_results:
            for output, array in ((o, a) for iteration in iterations for o, a in iteration.items()):
                found = _invalid(array, bool(check_inf), check_nan is not False)
                valid = valid and not found
                text = (
                    f"FAILED | Errors detected in output: {output} ({found})"
                    if found
                    else f"PASSED | Output: {output} is valid"
                )
                G_LOGGER.verdict(not found, f"{name:35} | {text}")
                if found and fail_fast:
                    return False
        G_LOGGER.verdict(valid, f"{'PASSED' if valid else 'FAILED'} | Output Validation")
        return valid


class _Feeds:
    """Feed dicts of a loader, each made once, for several runners in turn."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader
        self.taken: list[dict[str, Any]] = []
        self._metadata: TensorMetadata | None = None

    def fit(self, metadata: TensorMetadata) -> Iterator[dict[str, Any]]:
        if self._metadata is None:
            self._metadata = metadata
            _set_metadata(self.loader, metadata)
            self.taken = [dict(feed) for feed in self.loader]
        for index, feed in enumerate(self.taken):
            yield _fitted(feed, metadata, index)


def _run_one(runner: BaseRunner, feeds: _Feeds, warm_up: int) -> tuple[str, list[IterationResult]]:
    G_LOGGER.start(f"{runner.name:35} | Activating and starting inference")
    with runner:
        iterations = []
        for index, feed in enumerate(feeds.fit(runner.get_input_metadata())):
            for _ in range(warm_up if index == 0 else 0):
                runner.infer(feed)
            iterations.append(_infer(runner, feed))
    return runner.name, iterations


def _infer(runner: BaseRunner, feed: dict[str, Any]) -> IterationResult:
    outputs = runner.infer(feed)
    return IterationResult(copy.deepcopy(outputs), runner.last_inference_time(), runner.name)


def _stream(runners: Sequence[BaseRunner], loader: Any, save_inputs: str | None, save_outputs: str | None) -> Stream:
    inputs, outputs = [], []
    with ExitStack() as stack:
        active = [stack.enter_context(runner) for runner in runners]
        metadata = [runner.get_input_metadata() for runner in active]
        _set_metadata(loader, metadata[0])
        for index, feed in enumerate(loader):
            single = RunResults(
                (runner.name, [_infer(runner, _fitted(feed, known, index))])
                for runner, known in zip(active, metadata, strict=True)
            )
            if save_inputs is not None:
                inputs.append(dict(feed))
            if save_outputs is not None:
                outputs.append(single)
            yield single
    if save_inputs is not None:
        save_feeds(save_inputs, inputs)
    if save_outputs is not None:
        RunResults.concat(outputs).save(save_outputs)


def _set_metadata(loader: Any, metadata: TensorMetadata) -> None:
    if hasattr(loader, "input_metadata"):
        loader.input_metadata = metadata


def _fitted(feed: Any, metadata: TensorMetadata, index: int) -> dict[str, Any]:
    if not isinstance(feed, dict):
        raise UsageError(f"iteration {index} of the inputs is a {type(feed).__name__}, not a dict of arrays")
    return fit_feed(feed, metadata.infos(), G_LOGGER.warning, f"iteration {index}")


def _listed(functions: Any) -> list[CompareFunction]:
    if functions is None:
        return []
    return list(functions) if isinstance(functions, list | tuple) else [functions]


def _invalid(array: Any, check_inf: bool, check_nan: bool) -> str:
    if not np.issubdtype(np.asarray(array).dtype, np.inexact):
        return ""
    if check_nan and np.isnan(array).any():
        return "NaN"
    return "Inf" if check_inf and np.isinf(array).any() else ""


def _save_blobs(folder: str, feeds: Sequence[dict[str, Any]]) -> None:
    Path(folder).parent.mkdir(parents=True, exist_ok=True)
    with whole_folder(Path(folder), merge=True) as new:
        for index, feed in enumerate(feeds):
            place = (new / f"{index:010d}").resolve()
            place.mkdir()
            for name, array in feed.items():
                target = (place / f"{name}.bin").resolve()
                if not target.is_relative_to(place):
                    raise UsageError(f"input '{shown(name, 80)}' names a place outside {folder}")
                target.parent.mkdir(parents=True, exist_ok=True)
                np.asarray(array).tofile(target)
