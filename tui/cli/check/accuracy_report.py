"""Saved accuracy results as sections of a report."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from layerwise._tool.debugtools.report.figures import known, lasting
from layerwise._tool.debugtools.report.structure import Case, Section

if TYPE_CHECKING:
    from layerwise._tool.backends.results.accuracy import AccuracyResult, AccuracyResults, Result


def sections(checked: "AccuracyResults", gaps: Sequence[str]) -> list[Section]:
    """A section for each pair and metric, with a case for each output, and what was not compared."""
    found = [section for result in checked.results for section in _pairs(result)]
    bare = [Case(name=text, outcome="error", message=text, rule="accuracy/nothing-compared") for text in checked.bare()]
    left = [Case(name=text, outcome="skipped", message=text, rule="accuracy/not-compared") for text in gaps]
    return [section for section in [*found, Section("not compared", [*bare, *left])] if section.cases]


def _pairs(result: "AccuracyResult") -> Iterator[Section]:
    average = result.aggregation == "average"
    for pair, iterations in result.pairs.items():
        outputs = [result.average(pair)] if average else iterations
        cases = [_case(name, found, None if average or len(iterations) == 1 else number)
                 for number, each in enumerate(outputs) for name, found in each.items()]  # fmt: skip
        yield Section(f"{_label(outputs)}: {' vs. '.join(map(lasting, pair))}{', averages' if average else ''}", cases)


def _label(outputs: Sequence["dict[str, Result]"]) -> str:
    from layerwise._tool.backends.results.accuracy import MetricResult, SimpleResult

    first = next((found for each in outputs for found in each.values()), None)
    if isinstance(first, MetricResult):
        return first.threshold.metric.label
    return "simple" if isinstance(first, SimpleResult) else "verdicts"


def _case(name: str, found: "Result", iteration: int | None) -> Case:
    from layerwise._tool.backends.results.accuracy import MetricResult, SimpleResult, passed

    figures, told = known({}), ""
    if isinstance(found, MetricResult):
        figures, told = known({"value": found.value}), f"threshold {found.threshold.value:g}"
    elif isinstance(found, SimpleResult):
        figures = known(found.values)
        told = f"{found.threshold.stat} against atol {found.threshold.atol:g} and rtol {found.threshold.rtol:g}"
    good = passed(found)
    where = "" if iteration is None else f", iteration {iteration}"
    return Case(name=f"{name}{where}", outcome="passed" if good else "failed", rule="accuracy/threshold", tensor=name,
                message="" if good else f"beyond the threshold: {told}", figures=figures)  # fmt: skip
