"""Comparing two tensors: every number of a layer row; what they come to is in `verdict`."""

import math
from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison, all_equal
from layerwise._tool.debugtools.compare.arithmetic.distances import cosine, decibels, psnr, ratio, root_mean_square
from layerwise._tool.debugtools.compare.arithmetic.fused import fuse, measure, sum_of_squares
from layerwise._tool.debugtools.compare.arithmetic.kinds import Arithmetic, arithmetic
from layerwise._tool.debugtools.compare.arithmetic.order_statistics import (
    errors,
    match_shapes,
    median,
    quantile,
    summary,
)
from layerwise._tool.debugtools.compare.arithmetic.sentinels import Sentinels, find_sentinels, fuse_others, with_blanks
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, unit_roundoff
from layerwise._tool.debugtools.compare.arithmetic.totals import SideStatistics, Totals
from layerwise._tool.debugtools.compare.arithmetic.verdict import can_judge, verdict
from layerwise._tool.debugtools.compare.spec import MetricName

_NO_ERROR = np.zeros(1)


def compare_arrays(
    a: Array,
    b: Array,
    rule: Rule,
    *,
    metrics: Sequence[MetricName] = ("simple",),
    statistics: bool = False,
    medians: bool = False,
    shape_check: bool = True,
    depth: int = 1,
    types: Sequence[str] = (),
) -> Comparison:
    """Compare `a` with the reference `b` (any shapes, dtypes and layouts).

    statistics: exact median and quantiles of the errors and of both sides. medians: of the errors only. depth, types:
    rounded steps behind the tensor and what they rounded to, for a rule by which rounding decides.
    """
    result = Comparison((dtype_name(a), dtype_name(b)), (a.shape, b.shape), rule)
    if not shape_check:
        a, b, result.note = match_shapes(a, b)
    how = arithmetic(a.dtype, b.dtype)
    if a.shape != b.shape:
        return _fail(result, a, b, metrics, f"shapes differ: {_dims(a)} and {_dims(b)}")
    if how.kind == "none":
        return _fail(result, a, b, metrics, f"types cannot be compared: {result.dtypes[0]} and {result.dtypes[1]}")
    if how.kind == "string":
        return _compare_strings(result, a, b, metrics)
    totals = _judged_alone(result, a, b, how, depth, types)
    if how.kind == "float" and (found := _sentinels(result, a, b, totals, types)):
        totals = _without(found, result, (a, b), how, totals, depth, types)
    conclude(result, totals, a.size)
    _order(result, a, b, how, statistics, medians)
    result.verdicts = {name: verdict(name, result, a, b) for name in metrics if can_judge(name, result, a)}
    return result


def _sentinels(result: Comparison, a: Array, b: Array, totals: Totals, types: Sequence[str]) -> Sentinels | None:
    """What is left out of the sums: sentinels, and where rounding decides also what is NaN or infinite alike."""
    unit = unit_roundoff(result.dtypes)
    found = find_sentinels(a, b, totals, unit, types)
    return with_blanks(found, a, b, totals, unit) if result.rule.auto else found


def _judged_alone(result: Comparison, a: Array, b: Array, how: Arithmetic, depth: int, types: Sequence[str]) -> Totals:
    """The totals of all elements, with what rounding explains in the rule if it decides.

    That needs the reference's size: elements beyond it are counted in a second pass, where there may be any.
    """
    rule = result.rule
    if not rule.auto:
        return fuse(a, b, how, rule.atol, rule.rtol, infinities_equal=rule.infinities_equal)
    totals = fuse(a, b, how, math.inf, math.inf, infinities_equal=rule.infinities_equal)
    rms = root_mean_square(totals.b.moments.squares, b.size)
    result.rule = rule = rule.derived(result.dtypes, types, rms, depth)
    if not a.size or totals.within(rule.atol, rule.rtol):
        return totals
    return fuse(a, b, how, rule.atol, rule.rtol, infinities_equal=rule.infinities_equal)


def _without(
    found: Sentinels,
    result: Comparison,
    pair: tuple[Array, Array],
    how: Arithmetic,
    totals: Totals,
    depth: int,
    types: Sequence[str],
) -> Totals:
    """The totals without sentinels. A rule with tolerances of the user's judges all elements, as Polygraphy's does."""
    rule, unit = result.rule, unit_roundoff(result.dtypes)
    others = fuse_others(*pair, how, (rule.atol, rule.rtol), found, unit)
    if rule.auto:
        rms = root_mean_square(others.b.moments.squares, pair[1].size - found.count)
        result.rule = rule = rule.derived(result.dtypes, types, rms, depth)
        others = fuse_others(*pair, how, (rule.atol, rule.rtol), found, unit)
    size = pair[0].size
    what = "NaN or infinite" if found.blank and not found.values else f"sentinels ({found.value:.4g})"
    result.note = f"{found.count} of {size} elements are {what}, alike on both sides: left out"
    judged = others if rule.auto else totals
    return replace(
        others, a=totals.a, b=totals.b, abs=judged.abs, rel=judged.rel, over=judged.over, sentinels=found.count,
        others=(others.a.moments, others.b.moments),
    )  # fmt: skip


def conclude(result: Comparison, totals: Totals, size: int) -> None:
    """Put all that follows from the sums over `size` elements into `result`; verdicts are left to `judge`."""
    result.totals, result.sides, result.over = totals, (totals.a, totals.b), totals.over
    _distances(result, totals, size)


def array_stats(a: Array) -> SideStatistics | None:
    """Statistics of one array; None for strings and types without arithmetic."""
    how = arithmetic(a.dtype, a.dtype)
    return measure(a, how) if how.kind not in ("string", "none") else None


def _distances(result: Comparison, totals: Totals, size: int) -> None:
    squares_a, squares_b = (moments.squares for moments in totals.counted)
    result.l2 = math.sqrt(totals.difference)
    result.rel_l2 = ratio(result.l2, math.sqrt(squares_b))
    result.cosine = cosine(squares_a, squares_b, totals.difference, totals.product)
    result.psnr = psnr(totals, size)
    result.snr = decibels(squares_a, totals.difference)


def _order(result: Comparison, a: Array, b: Array, how: Arithmetic, statistics: bool, medians: bool) -> None:
    stat, rule = result.rule.stat, result.rule
    if not (statistics or medians or stat in ("median", "quantile")):
        return
    equal = all_equal(result)
    if statistics:
        first = summary(_flat_copy(a))
        same = equal and all(first.values())  # a zero may have the other sign
        result.order_sides = first, first if same else summary(_flat_copy(b))
    for relative, found in ((False, result.order_abs), (True, result.order_rel)):
        if equal:
            values = _NO_ERROR.copy()
        else:
            values = errors(a, b, how, relative=relative, infinities_equal=rule.infinities_equal)
        if statistics:
            found.update(summary(values))
        elif medians or stat == "median":
            found["median"] = median(values)
        if stat == "quantile":
            found["quantile"] = quantile(values, rule.quantile)


def _flat_copy(values: Array) -> Array:
    if values.dtype.kind == "c":
        return np.abs(values).ravel()
    return values.astype(np.float64 if values.dtype.kind != "f" else values.dtype).ravel()


def _compare_strings(result: Comparison, a: Array, b: Array, metrics: Sequence[MetricName]) -> Comparison:
    result.over = int(np.count_nonzero(np.asarray(a != b, dtype=bool)))
    result.note = result.note or "strings: compared for equality"
    result.verdicts = dict.fromkeys(metrics, result.over == 0)
    return result


def _fail(result: Comparison, a: Array, b: Array, metrics: Sequence[MetricName], note: str) -> Comparison:
    result.sides = (array_stats(a), array_stats(b))
    result.note = note
    result.verdicts = dict.fromkeys(metrics, False)
    return result


def rms_of(b: Array) -> float:
    """The root mean square of an array; infinite if anything is not finite."""
    return root_mean_square(sum_of_squares(b, arithmetic(b.dtype, b.dtype)), b.size)


def _dims(a: Array) -> str:
    return f"({', '.join(map(str, a.shape))})"
