"""Report lines of one compared tensor, in the words Polygraphy's users and their `--fail-regex` know."""

import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import UNSET

from layerwise._tool.backends.log import ERROR, FINISH, INFO, START, VERBOSE, WARNING
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.debugtools.compare.pairing.left_out import KINDS, why_not
from layerwise._tool.debugtools.compare.rows import LayerRow, SideStats
from layerwise._tool.debugtools.compare.spec import FIELDS, ToleranceSpec
from layerwise._tool.debugtools.compare.truth.figures import times

if TYPE_CHECKING:
    from layerwise._tool.backends.results.accuracy import Metric

NAME_LIMIT = 300


class ReportLine(NamedTuple):
    """One message: its level, its indentation below the iteration, its text."""

    level: int
    depth: int
    text: str


def label(metric: str) -> str:
    """How a metric is named at the head of its lines."""
    return _known(metric).label if metric in FIELDS else metric


def _known(metric: str) -> "Metric":
    from layerwise._tool.backends.results.accuracy import METRICS

    return METRICS[metric]


def name(text: object) -> str:
    """A name from a model, safe to print; the middle of very long ones is left out."""
    return shown(str(text), NAME_LIMIT)


def number(value: object) -> str:
    """Five significant digits, `nan` and `inf` as words, `-` for what is not known."""
    return f"{value:.5g}" if isinstance(value, int | float) else "-"


def limit(value: object) -> object:
    """A tolerance as it was asked for: the largest float stands for `inf`, which sets no limit."""
    return math.copysign(math.inf, value) if isinstance(value, float) and abs(value) == sys.float_info.max else value


def plain(value: object) -> str:
    """A tolerance as it is typed: 2, not 2.0."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() and abs(value) < 1e15 else str(value)


def shape(dims: object) -> str:
    """Dimensions as a Python tuple."""
    return str(tuple(dims)) if isinstance(dims, list | tuple) else "?"


def comparing(row: LayerRow, metric: str) -> ReportLine:
    """The head of one metric's lines for one tensor."""
    first, second = row.dtype
    return ReportLine(
        START,
        1,
        f"{label(metric)} | Comparing Output: '{name(row.tensor)}' (dtype={first}, shape={shape(row.shape)}) "
        f"with '{name(row.tensor2 or row.tensor)}' (dtype={second}, shape={shape(row.shape2 or row.shape)})",
    )


def metric_lines(row: LayerRow, metric: str, rules: ToleranceSpec) -> Iterator[ReportLine]:
    """All lines of one metric for one tensor."""
    yield comparing(row, metric)
    if not judged(row, metric):
        _, why = why_not(row) or ("", row.note)
        yield ReportLine(WARNING, 2, f"SKIPPED | Output: '{name(row.tensor)}' | {shown(why, 500)}")
        return
    if row.shape2 and row.max_abs is UNSET:
        yield from _different_shapes(row)
    elif metric == "simple":
        yield from _simple(row, rules)
    elif metric in FIELDS:
        yield _single(row, _known(metric), passed(row, metric), rules)
    elif metric == "indices":
        yield _indices(row, passed(row, metric), rules)
    else:
        ok = passed(row, metric)
        yield ReportLine(FINISH if ok else ERROR, 2, f"{'PASSED' if ok else 'FAILED'} | Output: '{name(row.tensor)}'")
    if row.truth is not UNSET:
        yield ReportLine(INFO, 2, f"Truth: {truth(row).removeprefix(' | ')}")
    if row.note and row.dtype[0] not in KINDS:
        yield ReportLine(INFO, 2, f"Note: {shown(row.note, 500)}")


def passed(row: LayerRow, metric: str) -> bool:
    """Whether the tensor passed one metric; the row's own verdict where the metric has none."""
    verdict = row.metrics.get(metric, row.passed)
    return verdict is not False


def skipped(row: LayerRow) -> bool:
    """Whether nothing of the tensor was compared."""
    return why_not(row) is not None


def judged(row: LayerRow, metric: str) -> bool:
    """Whether one metric has a verdict on the tensor that rests on something."""
    return not skipped(row) and (metric in row.metrics or row.passed is False)


def side_stats(row: LayerRow, runners: tuple[str, str]) -> Iterator[ReportLine]:
    """The statistics of both sides' values."""
    names = (row.tensor, row.tensor2 or row.tensor)
    for place, (runner, tensor, stats) in enumerate(zip(runners, names, row.stats, strict=False)):
        if stats is not None:
            text = _stats(stats, whole=row.dtype[place] != "bool")
            yield ReportLine(INFO, 1, f"{name(runner)}: {name(tensor)} | Stats: {text}")
            yield from _figure(row, place + 2, 2)


def _figure(row: LayerRow, place: int, depth: int) -> Iterator[ReportLine]:
    """The values and the histogram of one of the row's figures."""
    if row.figures is not UNSET and len(row.figures) > place and row.figures[place]:
        yield ReportLine(INFO if row.passed is False else VERBOSE, depth, shown_lines(row.figures[place]))


def truth(row: LayerRow) -> str:
    """` | ×14 (reference ×0.8)`: how far from the truth; or why that is not known. Nothing where nobody asked."""
    if row.truth is UNSET:
        return ""
    if row.truth.suspect is None:
        return f" | no truth: {shown(row.truth.why, 200)}"
    return f" | \u00d7{times(row.truth.suspect)} (reference \u00d7{times(row.truth.reference)})"


def compact(row: LayerRow) -> str:
    """One line for a tensor among many."""
    place = f"#{row.i} {name(row.op or '?')}"
    finding = f" | {row.finding}" if row.finding else ""
    for metric in row.metrics:
        if metric in FIELDS:
            finding = f" | {label(metric)} {number(getattr(row, FIELDS[metric]))}{finding}"
    if row.note:
        finding += f" | {shown(row.note, 300)}"
    return (
        f"Output: '{name(row.tensor)}' | {place} | {'/'.join(dict.fromkeys(row.dtype))} {shape(row.shape)} | "
        f"max abs {number(row.max_abs)} | max rel {number(row.max_rel)}"
        f" | {row.over or 0} of {row.size} over tolerance{truth(row)}{finding}"
    )


def _different_shapes(row: LayerRow) -> Iterator[ReportLine]:
    if row.dtype[0] in KINDS:
        yield ReportLine(ERROR, 2, f"FAILED | Output: `{name(row.tensor)}` | {shown(row.note, 500)}")
        return
    yield ReportLine(
        ERROR,
        2,
        f"FAILED | Output: `{name(row.tensor)}` | Will not compare outputs of different shapes.\n"
        f"Note: Output shapes are {shape(row.shape)} and {shape(row.shape2)}.",
    )
    yield ReportLine(ERROR, 2, "Note: Use --no-shape-check to attempt to compare values anyway.")


def _simple(row: LayerRow, rules: ToleranceSpec) -> Iterator[ReportLine]:
    tensor, ok = name(row.tensor), passed(row, "simple")
    atol, rtol, stat = limit(row.atol), limit(row.rtol), row.stat
    yield ReportLine(INFO, 2, f"Tolerance: [abs={number(atol)}, rel={number(rtol)}] | Checking {stat} error")
    yield ReportLine(INFO, 2, f"Error Metrics: {tensor}")
    yield ReportLine(INFO, 3, _required(row, stat, rules))
    for place, (word, kind) in enumerate((("Absolute", "abs"), ("Relative", "rel"))):
        stats = _stats(_difference(row, kind), whole=row.dtype[0] != "bool" or kind == "rel")
        yield ReportLine(INFO, 3, f"{word} Difference | Stats: {stats}")
        yield from _figure(row, place, 4)
    verdict = "PASSED" if ok else "FAILED"
    how = "is within" if ok else "exceeds"
    text = f"{verdict} | Output: '{tensor}' | Difference {how} tolerance (rel={plain(rtol)}, abs={plain(atol)})"
    yield ReportLine(FINISH if ok else ERROR, 2, text)


def _required(row: LayerRow, stat: str, rules: ToleranceSpec) -> str:
    absolute, relative = (number(row.required.abs), number(row.required.rel)) if row.required else ("-", "-")
    text = f"Minimum Required Tolerance: {stat} error | [abs={absolute}] OR [rel={relative}]"
    if stat == "elemwise":
        return text + " (requirements may be lower if both abs/rel tolerances are set)"
    if stat == "quantile":
        return text + f" (quantile={rule(rules.quantile, row.tensor, 0.99):.4g})"
    return text


def rule(rules: dict[str, Any], tensor: str, default: Any) -> Any:
    """The value that holds for `tensor`: its own, the one for all, or the default."""
    return rules.get(tensor, rules.get("", default))


def _difference(row: LayerRow, kind: str) -> SideStats | None:
    if row.max_abs is UNSET:
        return None
    names = ("mean", "std", "min", "argmin", "max", "argmax", "mean")
    quantiles = {key: getattr(row, f"{key}_{kind}") for key in ("median", "p90", "p95", "p99")}
    return SideStats(*(getattr(row, f"{key}_{kind}") for key in names), **quantiles)


def _stats(stats: SideStats | None, *, whole: bool = True) -> str:
    """whole: with the quantiles."""
    if stats is None:
        return "none (empty)"
    variance = stats.std * stats.std if stats.var is UNSET else stats.var
    parts = [("mean", stats.mean), ("std-dev", stats.std), ("var", variance), ("median", stats.median)]
    tail = [("avg-magnitude", stats.avg_magnitude), ("p90", stats.p90), ("p95", stats.p95), ("p99", stats.p99)]
    tail = tail if whole else tail[:1]
    texts, quantiles = ([f"{key}={number(v)}" for key, v in part if v is not UNSET] for part in (parts, tail))
    for key, value, index in (("min", stats.min, stats.argmin), ("max", stats.max, stats.argmax)):
        texts.append(f"{key}={number(value)} at {shape(index)}")
    return ", ".join([*texts, *quantiles])


def _single(row: LayerRow, metric: "Metric", ok: bool, rules: ToleranceSpec) -> ReportLine:
    field = FIELDS[metric.name]
    limit = rule(getattr(rules, field), row.tensor, metric.default)
    words = "min required" if metric.more_is_better else "tolerance"
    value, bound = _distinct(getattr(row, field), limit)
    text = f"{metric.label}: {value}{metric.unit} ({words}: {bound}{metric.unit}) | {'PASSED' if ok else 'FAILED'}"
    return ReportLine(FINISH if ok else ERROR, 2, text)


def _distinct(value: object, limit: float) -> tuple[str, str]:
    """Both with as few digits, five at least, as show that they differ."""
    if not isinstance(value, int | float):
        return "not computed", number(limit)
    for digits in range(5, 18):
        pair = f"{value:.{digits}g}", f"{limit:.{digits}g}"
        if value == limit or pair[0] != pair[1]:
            break
    return pair


def _indices(row: LayerRow, ok: bool, rules: ToleranceSpec) -> ReportLine:
    limit = rule(rules.index_tolerance, row.tensor, 0)
    if ok:
        return ReportLine(FINISH, 2, f"PASSED | Difference is within index tolerance ({limit})")
    return ReportLine(ERROR, 2, f"FAILED | Difference exceeds index tolerance ({limit})")
