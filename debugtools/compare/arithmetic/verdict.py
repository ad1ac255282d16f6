"""The verdict of each metric.

The pass rules are Polygraphy's (0.53): an element passes when its absolute error is at most atol or its relative
error, against the second side with exact zeros replaced by 2.2e-16, is at most rtol. NaN never passes; two infinities
pass only when asked. Where Polygraphy overflows, crashes or passes without looking, the exact arithmetic decides.
"""

import math

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.results.accuracy import METRICS
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison, statistic
from layerwise._tool.debugtools.compare.arithmetic.order_statistics import (
    indices_mismatches,
    lpips_distance,
    places_checked,
)
from layerwise._tool.debugtools.compare.spec import FIELDS, MetricName


def can_judge(metric: MetricName, result: Comparison, a: Array) -> bool:
    """Whether a metric looks at anything of what is there; the note says where it does not."""
    tolerance = result.rule.index_tolerance
    if metric != "indices" or not a.size or places_checked(a, tolerance):
        return True
    result.note = f"an index tolerance of {tolerance} leaves none of {a.shape[-1]} places to check"
    return False


def verdict(metric: MetricName, result: Comparison, a: Array, b: Array) -> bool:
    """Whether two tensors pass a metric. The note says why one cannot be computed."""
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
        return totals.over == 0 and _explained(result)
    absolute, relative = statistic(result, rule.stat)
    return absolute <= rule.atol or relative <= rule.rtol


def _explained(result: Comparison) -> bool:
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
