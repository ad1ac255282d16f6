"""Comparing pairs of runners over all iterations."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from layerwise.comparator.accuracy import AccuracyResult, AccuracyResults
from layerwise.comparator.struct import IterationResult, RunResults
from layerwise.logger import G_LOGGER

CompareFunction = Callable[[IterationResult, IterationResult], Any]


def default_comparisons(runs: RunResults) -> list[tuple[int, int]]:
    """Each runner with the next one."""
    return [(index, index + 1) for index in range(len(runs) - 1)]


def merged(results: Any) -> Iterator[RunResults]:
    """Results, a stream, or several of either, as one stream of single-iteration results.

    It ends with the shortest; a warning says so where others go on.
    """
    runs = results if isinstance(results, list | tuple) else [results]
    streams = [stream for run in runs for stream in _streams(run)]
    for compared, group in enumerate(zip_longest(*streams)):
        over = [place for place, single in enumerate(group) if single is None]
        if over:
            G_LOGGER.warning(
                f"The provided streams have different numbers of iterations. Only the first {compared} iteration(s) "
                f"-- present in all {len(streams)} streams -- were compared; stream(s) at index {over} ran out first."
            )
            return
        yield RunResults(runner for single in group for runner in single)


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
        for index, runs in enumerate(stream):
            pairs = default_comparisons(runs) if self.comparisons is None else self.comparisons
            for first, second in pairs:
                if index == 0:
                    G_LOGGER.start(f"Accuracy Comparison | {runs[first][0]} vs. {runs[second][0]}")
            G_LOGGER.info(f"Iteration: {index}")
            with G_LOGGER.indent():
                passed = [self._pair(runs, pair) for pair in pairs]
            if self.fail_fast and not all(passed):
                return self.results
        self._summary()
        return self.results

    def _pair(self, runs: RunResults, pair: tuple[int, int]) -> bool:
        (first, its0), (second, its1) = runs[pair[0]], runs[pair[1]]
        passed = True
        for function, result in zip(self.functions, self.results, strict=True):
            found = function(its0[0], its1[0])
            result.setdefault((first, second), []).append(found)
            passed = passed and all(map(bool, found.values()))
        return passed

    def _summary(self) -> None:
        for text in self.results.nothing_compared():
            G_LOGGER.warning(text)
        for pair in self.results[0]:
            iterations = zip(*(result[pair] for result in self.results), strict=True)
            passed = [all(bool(f) for outputs in each for f in outputs.values()) for each in iterations]
            good, total = sum(passed), len(passed)
            G_LOGGER.verdict(
                good == total,
                f"Accuracy Summary | {pair[0]} vs. {pair[1]} | Passed: {good}/{total} iterations | "
                f"Pass Rate: {100 * good / total:.2f}%",
            )
