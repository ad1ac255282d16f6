"""Accuracy results: what comparisons found, as Polygraphy's scripts read them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from layerwise._tool.backends.results import accuracy as floor
from layerwise._tool.backends.text import shown
from layerwise.common.interface import TypedDict, TypedList
from layerwise.json import Decoder, Encoder, add_json_methods
from layerwise.logger import G_LOGGER
from layerwise.util import is_sequence, unique_list, value_or_from_dict

Pair = tuple[str, str]


class AccuracyResult(TypedDict(lambda: tuple, lambda: list)):  # type: ignore[misc]
    """Pair of runners -> per iteration, output -> result.

    aggregation: "per_sample", or "average" if verdicts are on averages over the iterations. True if nothing failed;
    where there is nothing, as in Polygraphy, it is true too, with a warning.
    """

    def __init__(
        self, dct: Mapping[Pair, list[Mapping[str, Any]]] | None = None, aggregation: str = "per_sample"
    ) -> None:
        super().__init__(dct)
        self.aggregation = aggregation

    def __bool__(self) -> bool:
        for text in self.nothing_compared():
            G_LOGGER.warning(f"{text}: that nothing failed says nothing")
        if self.aggregation == "average":
            return all(bool(each) for pair in self.keys() for each in self.average_results(pair).values())
        return all(bool(each) for _, each in self._each())

    def nothing_compared(self) -> list[str]:
        """What there is no result of: a sentence for each pair; empty if the verdict rests on something."""
        pairs: dict[Pair, list[dict[str, floor.Result]]] = {
            pair: [dict.fromkeys(outputs, True) for outputs in iterations] for pair, iterations in self.items()
        }
        return floor.AccuracyResult(pairs).bare()

    def percentage(self, runner_pair: Pair | None = None) -> float:
        """The share of iterations that matched, 0 to 1; 1 where there are none."""
        if not len(self):
            return 1.0
        matched, _, total = self.stats(runner_pair)
        return matched / total if total else 1.0

    def stats(self, runner_pair: Pair | None = None) -> tuple[int, int, int]:
        """Iterations that matched, that did not, and all."""
        iterations = self[self._pair(runner_pair)]
        matched = sum(all(map(bool, outputs.values())) for outputs in iterations)
        return matched, len(iterations) - matched, len(iterations)

    def output_names(self) -> list[str]:
        """The outputs of all pairs and iterations."""
        return unique_list(name for name, _ in self._each())

    def average_results(self, runner_pair: Pair | None = None) -> dict[str, Any]:
        """Output -> a result with the means of its numbers over the iterations, and the thresholds of the first.

        PolygraphyException if an iteration has no numbers of an output, such as for another shape.
        """
        found: dict[str, list[Any]] = {}
        for outputs in self[self._pair(runner_pair)]:
            for name, result in outputs.items():
                found.setdefault(name, []).append(result)
        fields = self._result_metric_fields()
        return {name: _averaged(name, results, fields) for name, results in found.items()}

    def describe_average(self, runner_pair: Pair | None = None) -> dict[str, tuple[str, bool]]:
        """Output -> a line about its average, and whether it passed, where there is something to say."""
        told = {name: result.describe() for name, result in self.average_results(runner_pair).items()}
        return {name: each for name, each in told.items() if each is not None}

    def reevaluate(self, thresholds: Any, aggregation: str | None = None) -> "AccuracyResult":
        """Have other thresholds (one for all outputs, or output -> threshold) decide; returns itself.

        PolygraphyException for an output without one, and for results without the numbers that it needs.
        """
        if aggregation is not None:
            self.aggregation = aggregation
        for name, result in self._each():
            threshold = value_or_from_dict(thresholds, name)
            if threshold is None:
                G_LOGGER.critical(f"No threshold was provided for output: '{shown(name, 120)}'.")
            _check_fields(name, result, threshold)
            result.set_thresholds(threshold)
        return self

    def _each(self) -> Iterable[tuple[str, Any]]:
        return ((name, result) for its in self.values() for outputs in its for name, result in outputs.items())

    def _pair(self, runner_pair: Pair | None) -> Pair:
        return next(iter(self.keys())) if runner_pair is None else runner_pair

    def _result_metric_fields(self) -> list[str]:
        found = (result for _, result in self._each() if not isinstance(result, bool))
        return next((list(result.metric_fields()) for result in found), [])


@add_json_methods("accuracy results")
class AccuracyResults(TypedList(lambda: AccuracyResult)):  # type: ignore[misc]
    """One AccuracyResult for each comparison function. True if nothing failed in any, as they say it."""

    def __init__(self, lst: Iterable[AccuracyResult] | None = None) -> None:
        super().__init__(None if lst is None else list(lst))

    def __bool__(self) -> bool:
        if not len(self):
            G_LOGGER.warning("nothing was compared: that nothing failed says nothing")
        return all(map(bool, self))

    def nothing_compared(self) -> list[str]:
        """What there is no result of: a sentence for each; empty if the verdict rests on something."""
        if not len(self):
            return floor.AccuracyResults().bare()
        return unique_list(text for result in self for text in result.nothing_compared())

    def output_names(self) -> list[str]:
        """The outputs of all of them."""
        return unique_list(name for result in self for name in result.output_names())

    def reevaluate(self, thresholds: Any, aggregation: str | None = None) -> "AccuracyResults":
        """Keep, in the order of these thresholds, the results that have the numbers each of them needs, and have it
        decide on them; returns itself. PolygraphyException for a threshold that none fits.
        """
        left, kept = list(self), []
        for threshold in list(thresholds) if is_sequence(thresholds) else [thresholds]:
            fields = _fields_of(threshold)
            found = next((result for result in left if result._result_metric_fields() == fields), None)
            if found is None:
                there = [result._result_metric_fields() for result in self]
                G_LOGGER.critical(f"No saved comparison results match the requested threshold (of {fields})."
                                  f"\nNote: the saved results contain these metric fields: {there}")  # fmt: skip
            left.remove(found)
            kept.append(found.reevaluate(threshold, aggregation=aggregation))
        for result in left:
            G_LOGGER.info(f"Ignoring saved comparison with metric fields {result._result_metric_fields()}")
        self.lst = kept
        return self


def _averaged(name: str, results: Sequence[Any], fields: Sequence[str]) -> Any:
    if not all(hasattr(result, field) for result in results for field in fields) or not fields:
        G_LOGGER.critical(
            f"Output: {shown(name, 120)} | Cannot compute an averaged comparison because at least one iteration "
            "produced no comparable metrics (e.g. a shape mismatch)."
        )
    return type(results[0])(
        **{field: _mean([getattr(result, field) for result in results]) for field in fields},
        thresholds=results[0].thresholds,
    )


def _mean(values: Sequence[Any]) -> Any:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _check_fields(name: str, result: Any, threshold: Any) -> None:
    there = [] if isinstance(result, bool) else result.metric_fields()
    if not there:
        G_LOGGER.critical(
            f"Output: '{shown(name, 120)}' has no re-thresholdable metrics (it was a shape mismatch or an 'indices' "
            "comparison), so it cannot be re-evaluated against new thresholds."
        )
    if missing := [field for field in threshold.metric_fields() if field not in there]:
        G_LOGGER.critical(f"The requested comparison expects metric field(s) {missing} which are not present in the "
                          f"saved results for output: '{shown(name, 120)}' (it has: {there}).")  # fmt: skip


def _fields_of(threshold: Any) -> list[str]:
    if isinstance(threshold, dict):
        if not threshold:
            G_LOGGER.critical("A per-output threshold dictionary cannot be empty.")
        threshold = next(iter(threshold.values()))
    return list(threshold.metric_fields())


@Encoder.register(AccuracyResult)
def _encode(result: AccuracyResult) -> dict[str, Any]:
    return {"lst": [[list(pair), its] for pair, its in result.items()], "aggregation": result.aggregation}


@Decoder.register(AccuracyResult)
def _decode(found: dict[str, Any]) -> AccuracyResult:
    return AccuracyResult({tuple(pair): its for pair, its in found["lst"]}, aggregation=found["aggregation"])


@Encoder.register(AccuracyResults)
def _encode_all(results: AccuracyResults) -> dict[str, Any]:
    return {"lst": results.lst}


@Decoder.register(AccuracyResults)
def _decode_all(found: dict[str, Any]) -> AccuracyResults:
    return AccuracyResults(found["lst"])
