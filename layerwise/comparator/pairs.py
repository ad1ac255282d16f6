"""Comparing pairs of runners over all iterations."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise.comparator.accuracy import AccuracyResult, AccuracyResults
from layerwise.comparator.matching import metric_fields_for_func
from layerwise.comparator.struct import IterationResult, RunResults
from layerwise.comparator.thresholds import SimpleThreshold
from layerwise.comparator.util import log_compared_output_stats
from layerwise.logger import G_LOGGER

CompareFunction = Callable[[IterationResult, IterationResult], Any]


def default_comparisons(runs: RunResults) -> list[tuple[int, int]]:
    """Each runner with the next one."""
    return [(index, index + 1) for index in range(len(runs) - 1)]


def check_averages(functions: Sequence[Any], fail_fast: bool) -> None:
    """PolygraphyException for functions whose results have nothing that can be averaged."""
    if fail_fast:
        G_LOGGER.critical("check_average and fail_fast cannot be used together.")
    for function in functions:
        if not metric_fields_for_func(function):
            G_LOGGER.critical(f"{type(function).__name__} does not produce averageable metrics (needs thresholds_for, "
                              "results with numbers) and cannot be used with check_average=True.")  # fmt: skip
        threshold = function.thresholds_for("")
        if isinstance(threshold, SimpleThreshold) and threshold.check_error_stat == "elemwise":
            G_LOGGER.critical(
                "check_average is not supported with check_error_stat='elemwise', which has no statistic to average. "
                "Specify max, mean, median, or quantile."
            )


def merged(results: Any) -> Iterator[RunResults]:
    """Results, a stream, or several of either, as one stream of single-iteration results.

    It ends with the shortest; a warning says so where others go on. Streams are closed at its end.
    """
    runs = results if isinstance(results, list | tuple) else [results]
    streams = [stream for run in runs for stream in _streams(run)]
    try:
        for compared, group in enumerate(zip_longest(*streams)):
            over = [place for place, single in enumerate(group) if single is None]
            if over:
                G_LOGGER.warning(
                    f"The provided streams have different numbers of iterations. Only the first {compared} "
                    f"iteration(s) -- present in all {len(streams)} streams -- were compared; stream(s) at index "
                    f"{over} ran out first."
                )
                return
            yield RunResults(runner for single in group for runner in single)
    finally:
        for stream in streams:
            if callable(close := getattr(stream, "close", None)):
                close()


def _streams(run: Any) -> list[Iterable[RunResults]]:
    """A stream of single iterations for each runner of results; a stream is one already."""
    if isinstance(run, RunResults):
        return [[RunResults([(name, [iteration])]) for iteration in iterations] for name, iterations in run]
    return [run]


class Accuracy:
    """One comparison over all iterations."""

    def __init__(
        self,
        functions: Sequence[CompareFunction],
        comparisons: Sequence[tuple[int, int]] | None,
        fail_fast: bool,
        check_average: bool,
    ) -> None:
        self.functions = functions
        self.comparisons = comparisons
        self.fail_fast = fail_fast
        aggregation = "average" if check_average else "per_sample"
        self.results = AccuracyResults(AccuracyResult(aggregation=aggregation) for _ in functions)

    def compare(self, stream: Iterable[RunResults]) -> AccuracyResults:
        names: list[str] = []
        for index, runs in enumerate(stream):
            pairs = default_comparisons(runs) if self.comparisons is None else self.comparisons
            if index == 0:
                names = list(runs.keys())
                for first, second in pairs:
                    G_LOGGER.start(f"Accuracy Comparison | {names[first]} vs. {names[second]}")
            elif list(runs.keys()) != names:
                G_LOGGER.critical(f"Streamed iteration {index} contains a different set of runners than the first: "
                                  f"{shown(str(list(runs.keys())), 300)} vs. {shown(str(names), 300)}")  # fmt: skip
            G_LOGGER.info(f"Iteration: {index}")
            with G_LOGGER.indent():
                passed = [self._pair(runs, pair) for pair in pairs]
            if self.fail_fast and not all(passed):
                return self.results
        self._summary()
        return self.results

    def _pair(self, runs: RunResults, pair: tuple[int, int]) -> bool:
        (first, its0), (second, its1) = runs[pair[0]], runs[pair[1]]
        verdicts = [function(its0[0], its1[0]) for function in self.functions]
        for result, found in zip(self.results, verdicts, strict=True):
            result.dct.setdefault((first, second), []).append(found)
        if G_LOGGER.shows(G_LOGGER.INFO, "comparator"):
            log_compared_output_stats(its0[0], its1[0], verdicts, first, second)
        return all(bool(each) for found in verdicts for each in found.values())

    def _summary(self) -> None:
        for text in self.results.nothing_compared():
            G_LOGGER.warning(text)
        for pair in self.results[0]:
            head = f"Accuracy Summary | {pair[0]} vs. {pair[1]} | "
            if self.results[0].aggregation == "average":
                self._average(pair, head)
                continue
            iterations = zip(*(result[pair] for result in self.results), strict=True)
            passed = [all(bool(f) for outputs in each for f in outputs.values()) for each in iterations]
            good, total = sum(passed), len(passed)
            rate = 100 * good / total if total else 100.0
            G_LOGGER.verdict(good == total, f"{head}Passed: {good}/{total} iterations | Pass Rate: {rate:.2f}%")

    def _average(self, pair: tuple[str, str], head: str) -> None:
        averages = [result.average_results(pair) for result in self.results]
        names = list(dict.fromkeys(name for each in averages for name in each))
        passed = {name: all(bool(each.get(name, True)) for each in averages) for name in names}
        G_LOGGER.verdict(all(passed.values()), f"{head}Passed: {sum(passed.values())}/{len(names)} outputs")
        with G_LOGGER.indent():
            for name in names:
                G_LOGGER.verdict(passed[name], f"{shown(name, 200)} | {'PASSED' if passed[name] else 'FAILED'}")
                for told in (each[name].describe() for each in averages if name in each):
                    if told is not None:
                        G_LOGGER.verdict(told[1], f"    {told[0]}")
