"""The last sentence of a baseline: what has grown, why it may have, and what to do next."""

from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.baseline.rows import BaselineResult, ChangeRow
from layerwise._tool.debugtools.baseline.spec import BaselineSpec
from layerwise._tool.debugtools.compare.result import CompareResult


def accepted(count: int, result: CompareResult) -> str:
    """The sentence of a baseline that was made."""
    kept = f"The errors of {counted(count, 'layer')} are kept."
    return kept if result.passed else f"{kept} The comparison itself does not pass: {result.conclusion}"


def conclusion(result: BaselineResult, spec: BaselineSpec) -> str:
    """The sentence of a baseline that was checked."""
    parts = [_found(result), *_aside(result)]
    if spec.output:
        parts.append("The file is written anew.")
    elif not result.passed:
        how = "`baseline check --update`" if spec.paths else "`pytest --layerwise-accept`"
        parts.append(f"{how} keeps the errors of now, once somebody has looked at them.")
    return " ".join(parts)


def _found(result: BaselineResult) -> str:
    first, counts = result.first, result.counts
    if not result.compared:
        return "No layer of the baseline is there: this is another model."
    if first is not None and first.change == "lost":
        return f"The output {shown(first.layer, 100)} is gone."
    if first is None:
        return f"No layer has grown beyond its rounding: {counted(result.compared, 'layer')} of the baseline."
    if first.change == "fails":
        return f"{label(first)} passed its tolerance and fails it now: {first.cause}."
    more = counts.get("grown", 0) - 1
    beside = f", and {counted(more, 'more layer')} by {'itself' if more == 1 else 'themselves'}" if more > 0 else ""
    behind = counts.get("follows", 0)
    after = f"; {counted(behind, 'layer')} behind it {'follows' if behind == 1 else 'follow'}" if behind else ""
    passing = ", though the outputs pass their tolerances" if result.outputs_pass else ""
    return f"{label(first)} {grown(first)}{beside}{after}{passing}. What fits: {first.cause}."


def _aside(result: BaselineResult) -> list[str]:
    counts = result.counts
    found = []
    if counts.get("unsure"):
        found.append(f"{counted(counts['unsure'], 'layer')} near the bound: repetitions do not tell.")
    if counts.get("lost") or counts.get("new"):
        lost, new = (counted(counts.get(kind, 0), "layer") for kind in ("lost", "new"))
        found.append(f"{lost} of the baseline gone, {new} not in it.")
    return found


def grown(row: ChangeRow) -> str:
    """By how much a layer has grown, in words."""
    now, then = _number(row.error), _number(row.error_then)
    if row.error is not None and row.limit and row.error > row.limit:
        return f"has grown: relative L2 error {now}, was {then}, of which rounding explains {_number(row.limit)}"
    if row.peak is not None and row.peak > row.peak_limit:
        return (
            f"has grown in single elements: the largest error is {_number(row.peak)} of the RMS, was "
            f"{_number(row.peak_then)}, of which rounding explains {_number(row.peak_limit)}"
        )
    return f"holds values that are not finite or of another shape, as it did not: relative L2 error {now}, was {then}"


def label(row: ChangeRow) -> str:
    """A layer by its place, operator and name."""
    place = f"#{row.i} " if row.i >= 0 else ""
    op = f"{shown(row.op, 40)} " if row.op else ""
    return f"{place}{op}{shown(row.node or row.layer, 100)}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3g}"
