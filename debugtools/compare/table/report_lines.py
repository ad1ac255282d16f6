"""Report lines of one compared tensor, in the words Polygraphy's users and their `--fail-regex` know. Pure functions.

A row is one entry of the job's table "layers": plain JSON values, made where the tensors are.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from layerwise._tool.backends.log import ERROR, FINISH, INFO, START, WARNING
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.pairing.left_out import KINDS, why_not
from layerwise._tool.debugtools.compare.spec import ToleranceSpec

Row = dict[str, Any]
NAME_LIMIT = 300


class Line(NamedTuple):
    """One message: its level, its indentation below the iteration, its text."""

    level: int
    depth: int
    text: str


class Metric(NamedTuple):
    """A single-number metric: field of the row, label, unit, whether larger is better, rules and default."""

    field: str
    label: str
    unit: str
    higher: bool
    rules: str
    default: float


SINGLE = {
    "l2": Metric("l2", "L2 Norm", "", False, "l2", 1e-5),
    "cosine_similarity": Metric("cosine", "Cosine Similarity", "", True, "cosine", 0.997),
    "psnr": Metric("psnr", "PSNR", " dB", True, "psnr", 30.0),
    "snr": Metric("snr", "SNR", " dB", True, "snr", 20.0),
    "perceptual_metrics": Metric("lpips", "LPIPS", "", False, "lpips", 0.1),
}


def label(metric: str) -> str:
    """How a metric is named at the head of its lines."""
    return SINGLE[metric].label if metric in SINGLE else metric


def name(text: object) -> str:
    """A name from a model, safe to print; the middle of very long ones is left out."""
    return shown(str(text), NAME_LIMIT)


def number(value: object) -> str:
    """Five significant digits, `nan` and `inf` as words, `-` for what is not known."""
    return f"{value:.5g}" if isinstance(value, int | float) else "-"


def shape(dims: object) -> str:
    """Dimensions as a Python tuple."""
    return str(tuple(dims)) if isinstance(dims, list | tuple) else "?"


def comparing(row: Row, metric: str) -> Line:
    """The head of one metric's lines for one tensor."""
    first, second = row["dtype"]
    other = row.get("tensor2") or row["tensor"]
    return Line(
        START,
        1,
        f"{label(metric)} | Comparing Output: '{name(row['tensor'])}' (dtype={first}, shape={shape(row['shape'])}) "
        f"with '{name(other)}' (dtype={second}, shape={shape(row.get('shape2') or row['shape'])})",
    )


def metric_lines(row: Row, metric: str, rules: ToleranceSpec) -> Iterator[Line]:
    """All lines of one metric for one tensor."""
    yield comparing(row, metric)
    if not judged(row, metric):
        _, why = why_not(row) or ("", row.get("note"))
        yield Line(WARNING, 2, f"SKIPPED | Output: '{name(row['tensor'])}' | {shown(str(why), 500)}")
        return
    if row.get("shape2") and row.get("max_abs") is None:
        yield from _different_shapes(row)
    elif metric == "simple":
        yield from _simple(row, rules)
    elif metric in SINGLE:
        yield _single(row, SINGLE[metric], passed(row, metric), rules)
    elif metric == "indices":
        yield _indices(row, passed(row, metric), rules)
    else:
        ok = passed(row, metric)
        yield Line(FINISH if ok else ERROR, 2, f"{'PASSED' if ok else 'FAILED'} | Output: '{name(row['tensor'])}'")
    if row.get("note") and row["dtype"][0] not in KINDS:
        yield Line(INFO, 2, f"Note: {shown(str(row['note']), 500)}")


def passed(row: Row, metric: str) -> bool:
    """Whether the tensor passed one metric; the row's own verdict where the metric has none."""
    verdict = (row.get("metrics") or {}).get(metric, row.get("passed"))
    return verdict is not False


def skipped(row: Row) -> bool:
    """Whether nothing of the tensor was compared."""
    return why_not(row) is not None


def judged(row: Row, metric: str) -> bool:
    """Whether one metric has a verdict on the tensor that rests on something."""
    return not skipped(row) and (metric in row["metrics"] or row["passed"] is False)


def side_stats(row: Row, runners: tuple[str, str]) -> Iterator[Line]:
    """The statistics of both sides' values."""
    names = (row["tensor"], row.get("tensor2") or row["tensor"])
    for runner, tensor, stats in zip(runners, names, row.get("stats") or [], strict=False):
        if stats:
            yield Line(INFO, 1, f"{name(runner)}: {name(tensor)} | Stats: {_stats(stats)}")


def compact(row: Row) -> str:
    """One line for a tensor among many."""
    place = f"#{row.get('i')} {name(row.get('op') or '?')}"
    finding = f" | {row['finding']}" if row.get("finding") else ""
    for metric in row.get("metrics") or {}:
        if metric in SINGLE:
            finding = f" | {SINGLE[metric].label} {number(row.get(SINGLE[metric].field))}{finding}"
    if row.get("note"):
        finding += f" | {shown(str(row['note']), 300)}"
    return (
        f"Output: '{name(row['tensor'])}' | {place} | {'/'.join(dict.fromkeys(row['dtype']))} {shape(row['shape'])} | "
        f"max abs {number(row.get('max_abs'))} | max rel {number(row.get('max_rel'))}"
        f" | {row.get('over') or 0} of {row.get('size', '?')} over tolerance{finding}"
    )


def _different_shapes(row: Row) -> Iterator[Line]:
    if row["dtype"][0] in KINDS:
        yield Line(ERROR, 2, f"FAILED | Output: `{name(row['tensor'])}` | {shown(str(row['note']), 500)}")
        return
    yield Line(
        ERROR,
        2,
        f"FAILED | Output: `{name(row['tensor'])}` | Will not compare outputs of different shapes.\n"
        f"Note: Output shapes are {shape(row['shape'])} and {shape(row['shape2'])}.",
    )
    yield Line(ERROR, 2, "Note: Use --no-shape-check to attempt to compare values anyway.")


def _simple(row: Row, rules: ToleranceSpec) -> Iterator[Line]:
    tensor, ok = name(row["tensor"]), passed(row, "simple")
    atol, rtol, stat = row.get("atol", 1e-5), row.get("rtol", 1e-5), row.get("stat", "elemwise")
    yield Line(INFO, 2, f"Tolerance: [abs={number(atol)}, rel={number(rtol)}] | Checking {stat} error")
    yield Line(INFO, 2, f"Error Metrics: {tensor}")
    yield Line(INFO, 3, _required(row, stat, rules))
    for word, kind in (("Absolute", "abs"), ("Relative", "rel")):
        yield Line(INFO, 3, f"{word} Difference | Stats: {_stats(_difference(row, kind))}")
    verdict = "PASSED" if ok else "FAILED"
    how = "is within" if ok else "exceeds"
    text = f"{verdict} | Output: '{tensor}' | Difference {how} tolerance (rel={rtol}, abs={atol})"
    yield Line(FINISH if ok else ERROR, 2, text)


def _required(row: Row, stat: str, rules: ToleranceSpec) -> str:
    required = row.get("required") or {}
    absolute, relative = number(required.get("abs")), number(required.get("rel"))
    text = f"Minimum Required Tolerance: {stat} error | [abs={absolute}] OR [rel={relative}]"
    if stat == "elemwise":
        return text + " (requirements may be lower if both abs/rel tolerances are set)"
    if stat == "quantile":
        return text + f" (quantile={rule(rules.quantile, row['tensor'], 0.99):.4g})"
    return text


def rule(rules: dict[str, Any], tensor: str, default: Any) -> Any:
    """The value that holds for `tensor`: its own, the one for all, or the default."""
    return rules.get(tensor, rules.get("", default))


def _difference(row: Row, kind: str) -> dict[str, Any]:
    keys = ("mean", "std", "median", "min", "argmin", "max", "argmax", "p90", "p95", "p99")
    stats = {key: row.get(f"{key}_{kind}") for key in keys}
    return stats | {"avg_magnitude": stats["mean"]}


def _stats(stats: dict[str, Any]) -> str:
    std = stats.get("std")
    variance = stats.get("var", std * std if isinstance(std, int | float) else None)
    parts = [
        ("mean", stats.get("mean")),
        ("std-dev", std),
        ("var", variance),
        ("median", stats.get("median")),
    ]
    text = [f"{key}={number(value)}" for key, value in parts if value is not None]
    text += [_placed(key, stats) for key in ("min", "max") if stats.get(key) is not None]
    tail = [("avg-magnitude", "avg_magnitude"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99")]
    text += [f"{shown_as}={number(stats[key])}" for shown_as, key in tail if stats.get(key) is not None]
    return ", ".join(text) or "none (empty)"


def _placed(key: str, stats: dict[str, Any]) -> str:
    index = stats.get(f"arg{key}")
    return f"{key}={number(stats[key])}" + (f" at {shape(index)}" if index is not None else "")


def _single(row: Row, metric: Metric, ok: bool, rules: ToleranceSpec) -> Line:
    limit = rule(getattr(rules, metric.rules), row["tensor"], metric.default)
    words = "min required" if metric.higher else "tolerance"
    value, bound = _distinct(row.get(metric.field), limit)
    text = f"{metric.label}: {value}{metric.unit} ({words}: {bound}{metric.unit}) | {'PASSED' if ok else 'FAILED'}"
    return Line(FINISH if ok else ERROR, 2, text)


def _distinct(value: object, limit: float) -> tuple[str, str]:
    """Both with as few digits, five at least, as show that they differ."""
    if not isinstance(value, int | float):
        return "not computed", number(limit)
    for digits in range(5, 18):
        pair = f"{value:.{digits}g}", f"{limit:.{digits}g}"
        if value == limit or pair[0] != pair[1]:
            break
    return pair


def _indices(row: Row, ok: bool, rules: ToleranceSpec) -> Line:
    limit = rule(rules.index_tolerance, row["tensor"], 0)
    if ok:
        return Line(FINISH, 2, f"PASSED | Difference is within index tolerance ({limit})")
    return Line(ERROR, 2, f"FAILED | Difference exceeds index tolerance ({limit})")
