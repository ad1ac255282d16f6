"""Comparing two tensors: every number of a layer row, and the verdict of each metric.

The pass rules are Polygraphy's (0.53): an element passes when its absolute error is at most atol or its relative
error, against the second side with exact zeros replaced by 2.2e-16, is at most rtol. NaN never passes; two infinities
pass only when asked. Where Polygraphy overflows, crashes or passes without looking, the exact arithmetic decides.
"""

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.results.accuracy import METRICS
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.distances import cosine, decibels, psnr, ratio, root_mean_square
from layerwise._tool.debugtools.compare.arithmetic.fused import fuse, measure, sum_of_squares
from layerwise._tool.debugtools.compare.arithmetic.kinds import Arithmetic, arithmetic
from layerwise._tool.debugtools.compare.arithmetic.order_statistics import (
    errors,
    indices_mismatches,
    lpips_distance,
    match_shapes,
    median,
    places_checked,
    quantile,
    summary,
)
from layerwise._tool.debugtools.compare.arithmetic.sentinels import Sentinels, find_sentinels, fuse_others, with_blanks
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, unit_roundoff
from layerwise._tool.debugtools.compare.arithmetic.totals import Moments, Number, SideStatistics, Totals
from layerwise._tool.debugtools.compare.spec import FIELDS, MetricName

_NO_ERROR = np.zeros(1)


class Comparison(Struct):
    """Two tensors compared. Numbers are None where they have no meaning (strings, different shapes).

    over: elements beyond both tolerances. order_abs, order_rel: median and quantiles, where asked for.
    verdicts: metric -> passed; None in place of the dict if nothing could be checked.
    """

    dtypes: tuple[str, str]
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    rule: Rule
    totals: Totals | None = None
    sides: tuple[SideStatistics | None, SideStatistics | None] = (None, None)
    l2: float | None = None
    rel_l2: float | None = None
    cosine: float | None = None
    psnr: float | None = None
    snr: float | None = None
    lpips: float | None = None
    over: int | None = None
    order_abs: dict[str, float] = field(default_factory=dict)
    order_rel: dict[str, float] = field(default_factory=dict)
    order_sides: tuple[dict[str, float], dict[str, float]] = field(default_factory=lambda: ({}, {}))
    verdicts: dict[str, bool] = field(default_factory=dict)
    note: str = ""

    @property
    def passed(self) -> bool | None:
        """Whether every metric passed; None if no metric was asked for."""
        return all(self.verdicts.values()) if self.verdicts else None

    def required(self) -> tuple[Number, Number] | None:
        """The smallest absolute and relative tolerance that would pass, by the rule's statistic."""
        return None if self.totals is None else statistic(self, self.rule.stat)


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
    result.verdicts = {name: _verdict(name, result, a, b) for name in metrics if _can_judge(name, result, a)}
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
    if not a.size or worst(totals.abs) <= rule.atol or worst(totals.rel) <= rule.rtol:
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


def _can_judge(metric: MetricName, result: Comparison, a: Array) -> bool:
    """Whether a metric looks at anything of what is there; the note says where it does not."""
    tolerance = result.rule.index_tolerance
    if metric != "indices" or not a.size or places_checked(a, tolerance):
        return True
    result.note = f"an index tolerance of {tolerance} leaves none of {a.shape[-1]} places to check"
    return False


def conclude(result: Comparison, totals: Totals, size: int) -> None:
    """Put all that follows from the sums over `size` elements into `result`; verdicts are left to `judge`."""
    result.totals, result.sides, result.over = totals, (totals.a, totals.b), totals.over
    _distances(result, totals, size)


def all_equal(result: Comparison) -> bool:
    """Whether both sides, of one type, are 0 apart in every element: what is known of one side holds for the other."""
    totals = result.totals
    if totals is None or result.dtypes[0] != result.dtypes[1] or totals.sentinels:
        return False
    counts = {totals.abs.count, totals.rel.count, totals.a.moments.count}
    return counts != {0} and len(counts) == 1 and totals.abs.high == totals.rel.high == 0


def array_stats(a: Array) -> SideStatistics | None:
    """Statistics of one array; None for strings and types without arithmetic."""
    how = arithmetic(a.dtype, a.dtype)
    return measure(a, how) if how.kind not in ("string", "none") else None


def statistic(result: Comparison, stat: str) -> tuple[Number, Number]:
    """The absolute and relative error by a statistic: elemwise, max, mean, median or quantile."""
    totals = result.totals
    assert totals is not None
    if stat in ("median", "quantile"):
        return result.order_abs[stat], result.order_rel[stat]
    if stat == "mean":
        return totals.abs.mean, totals.rel.mean
    return worst(totals.abs), worst(totals.rel)


def worst(moments: Moments) -> Number:
    """The maximum; 0 for an empty tensor."""
    return moments.high if moments.count else 0.0


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
        result.order_sides = first, first if equal else summary(_flat_copy(b))
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


def _verdict(metric: MetricName, result: Comparison, a: Array, b: Array) -> bool:
    if metric == "indices":
        return indices_mismatches(a, b, result.rule.index_tolerance) == 0
    if metric == "perceptual_metrics":
        return _perceptual(result, a, b)
    return judge(metric, result, a.size)


def judge(metric: MetricName, result: Comparison, size: int) -> bool:
    """The verdict of a metric that the sums decide: simple, l2, cosine_similarity, psnr or snr."""
    rule = result.rule
    if metric == "simple":
        return _simple(result)
    if not size:
        return True
    value, threshold = (float(getattr(each, FIELDS[metric])) for each in (result, rule))
    return value >= threshold if METRICS[metric].more_is_better else value <= threshold


def _simple(result: Comparison) -> bool:
    rule, totals = result.rule, result.totals
    assert totals is not None
    if not totals.abs.count:
        return True
    if rule.stat == "elemwise":
        return totals.over == 0 and explained(result)
    absolute, relative = statistic(result, rule.stat)
    return absolute <= rule.atol or relative <= rule.rtol


def explained(result: Comparison) -> bool:
    """Whether rounding explains the error of the tensor as a whole; True for a rule that does not ask."""
    rule, totals = result.rule, result.totals
    if rule.bound is None or totals is None:
        return True
    squares, count = totals.counted[1].squares, totals.abs.count
    return math.sqrt(totals.difference) <= rule.bound * math.sqrt(squares) + rule.floor * math.sqrt(count)


def _perceptual(result: Comparison, a: Array, b: Array) -> bool:
    try:
        result.lpips = lpips_distance(a, b)
    except LayerwiseError as error:
        result.note = str(error)
        return False
    return result.lpips <= result.rule.lpips


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
