"""Running runners on the same inputs, and comparing what they gave."""

from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from layerwise.backend.base import BaseRunner
from layerwise.comparator.accuracy import AccuracyResults
from layerwise.comparator.compare import SimpleCompareFunc
from layerwise.comparator.pairs import Accuracy, CompareFunction, check_averages, default_comparisons, merged
from layerwise.comparator.running import Saving, one_after_the_other, together
from layerwise.comparator.struct import IterationResult, RunResults
from layerwise.comparator.validation import validated, validated_stream
from layerwise.json.iterations import ITERATION_FILE_INDEX_WIDTH
from layerwise.logger import G_LOGGER

__all__ = ["ITERATION_FILE_INDEX_WIDTH", "Comparator"]


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

        data_loader: an iterable of feed dicts; a DataLoader by default. use_subprocess: each runner in a process of its
        own, which may crash; subprocess_timeout: seconds that it may take to end once it has given its results. Paths
        are of JSON files that Polygraphy reads or, without an extension, of new folders with a file an iteration.
        PolygraphyException for options that exclude each other, for inputs that do not fit, for a crash.
        """
        _check_paths(save_inputs_path, save_outputs_path, save_input_blob_path)
        saving = Saving(save_inputs_path, save_outputs_path, save_input_blob_path)
        if streaming:
            if warm_up or use_subprocess:
                G_LOGGER.critical("streaming=True does not support warm_up or use_subprocess.")
            return together(runners, data_loader, saving)
        wait = (subprocess_polling_interval or 30, subprocess_timeout) if use_subprocess else None
        return one_after_the_other(runners, data_loader, warm_up or 0, wait, saving)

    @staticmethod
    def postprocess(run_results: Any, postprocess_func: Callable[[IterationResult], IterationResult]) -> Any:
        """Results, in place, a stream, or a list of them, with every iteration changed by `postprocess_func`."""
        if isinstance(run_results, list | tuple):
            return [Comparator.postprocess(each, postprocess_func) for each in run_results]
        if isinstance(run_results, RunResults):
            for iterations in run_results.values():
                iterations[:] = map(postprocess_func, iterations)
            return run_results
        return (Comparator.postprocess(single, postprocess_func) for single in run_results)

    @staticmethod
    def default_comparisons(run_results: RunResults) -> list[tuple[int, int]]:
        """Each runner with the next one."""
        return default_comparisons(run_results)

    @staticmethod
    def compare_accuracy(
        run_results: Any,
        fail_fast: bool = False,
        comparisons: Sequence[tuple[int, int]] | None = None,
        compare_func: CompareFunction | Sequence[CompareFunction] | None = None,
        check_average: bool = False,
    ) -> AccuracyResults:
        """Compare pairs of runners, each with the next by default, with one or several functions.

        run_results: results, a stream of them, or several of either, whose runners are then compared together.
        check_average: verdicts are on averages over the iterations. PolygraphyException for functions without numbers
        to average, and with fail_fast.
        """
        given = compare_func if isinstance(compare_func, list | tuple) else [compare_func]
        functions: list[Any] = [SimpleCompareFunc() if each is None else each for each in given]
        if check_average:
            check_averages(functions, bool(fail_fast))
        return Accuracy(functions, comparisons, bool(fail_fast), bool(check_average)).compare(merged(run_results))

    @staticmethod
    def validate(
        run_results: Any,
        check_inf: bool | None = None,
        check_nan: bool | None = None,
        fail_fast: bool | None = None,
    ) -> Any:
        """Whether no output holds NaN (nor, with `check_inf`, what is not finite).

        Of a list of results, a list. A stream is passed on; PolygraphyException where an iteration has such values.
        """
        if isinstance(run_results, list | tuple):
            return [Comparator.validate(each, check_inf, check_nan, fail_fast) for each in run_results]
        check = bool(check_inf), check_nan is not False
        if isinstance(run_results, RunResults):
            return validated(run_results, *check, fail_fast=bool(fail_fast))
        return validated_stream(run_results, *check)


def _check_paths(*paths: str | None) -> None:
    for first, second in combinations([Path(path).resolve() for path in paths if path is not None], 2):
        if first == second:
            G_LOGGER.critical(f"Two of save_inputs_path, save_outputs_path and save_input_blob_path are '{first}'")
