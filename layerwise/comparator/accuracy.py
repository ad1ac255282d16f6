"""Accuracy results: what comparisons found, as Polygraphy's scripts read them."""

import os
from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.results import accuracy as floor
from layerwise._tool.backends.results.io import load_accuracy
from layerwise.logger import G_LOGGER

Pair = tuple[str, str]


class CompareResult:
    """The comparison of one output: true if it passed. Its numbers (max_absdiff, l2_norm, …) are attributes."""

    def __init__(self, found: floor.SimpleResult | floor.MetricResult) -> None:
        self.found = found

    def __bool__(self) -> bool:
        return self.found.passed

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "found":
            raise AttributeError(name)
        values = self._values()
        if name not in values:
            raise AttributeError(name)
        return values[name]

    def _values(self) -> Mapping[str, Any]:
        if isinstance(self.found, floor.SimpleResult):
            return self.found.values
        return {self.found.threshold.metric.field: self.found.value}


Found = CompareResult | bool


class AccuracyResult(dict[Pair, list[dict[str, Found]]]):
    """Pair of runners -> per iteration, output -> result.

    True if nothing failed; where there is nothing, as in Polygraphy, it is true too, with a warning.
    """

    def __init__(
        self, found: Mapping[Pair, list[dict[str, Found]]] | None = None, aggregation: str = "per_sample"
    ) -> None:
        super().__init__(found or {})
        self.aggregation = aggregation

    def __bool__(self) -> bool:
        found = self.to_floor()
        for text in found.bare():
            G_LOGGER.warning(f"{text}: that nothing failed says nothing")
        return not found.failed

    def stats(self, runner_pair: Pair | None = None) -> tuple[int, int, int]:
        """Iterations that matched, that did not, and all."""
        iterations = self[runner_pair or next(iter(self))]
        matched = sum(all(map(bool, outputs.values())) for outputs in iterations)
        return matched, len(iterations) - matched, len(iterations)

    def percentage(self, runner_pair: Pair | None = None) -> float:
        """The share of iterations that matched, 0 to 1; 1 where there are none."""
        if not self:
            return 1.0
        matched, _, total = self.stats(runner_pair)
        return matched / total if total else 1.0

    def to_floor(self) -> floor.AccuracyResult:
        """As the floors below have it."""
        pairs = {pair: [{out: _bare(found) for out, found in it.items()} for it in its] for pair, its in self.items()}
        return floor.AccuracyResult(pairs, self.aggregation)


class AccuracyResults(list[AccuracyResult]):
    """One AccuracyResult for each comparison function. True if nothing failed in any, as they say it."""

    def __bool__(self) -> bool:
        if len(self) == 0:
            G_LOGGER.warning("nothing was compared: that nothing failed says nothing")
        return all(map(bool, self))

    def nothing_compared(self) -> list[str]:
        """What there is no result of: a sentence for each; empty if the verdict rests on something."""
        return floor.AccuracyResults([result.to_floor() for result in self]).bare()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write them as JSON that Polygraphy reads."""
        floor.AccuracyResults([result.to_floor() for result in self]).save(path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "AccuracyResults":
        """Read saved accuracy results. BadFile names the file and the reason."""
        return from_floor(load_accuracy(path))


def from_floor(found: floor.AccuracyResults) -> AccuracyResults:
    """From what the floors below have."""
    return AccuracyResults(map(_lifted, found.results))


def _bare(found: Any) -> floor.Result:
    return found.found if isinstance(found, CompareResult) else bool(found)


def _lifted(result: floor.AccuracyResult) -> AccuracyResult:
    pairs = {
        pair: [{out: _lift(found) for out, found in it.items()} for it in its] for pair, its in result.pairs.items()
    }
    return AccuracyResult(pairs, result.aggregation)


def _lift(found: floor.Result) -> Found:
    return found if isinstance(found, bool) else CompareResult(found)
