"""Comparing tensors that lie on one GPU: the device gives the sums, the host draws the same conclusions from them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from layerwise._tool.backends.cuda.kernels import TYPES
from layerwise._tool.backends.cuda.metrics import NEVER, DeviceMetrics, DevicePair
from layerwise._tool.backends.cuda.tensors import DeviceTensor, fetch
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.distances import root_mean_square
from layerwise._tool.debugtools.compare.arithmetic.kernel import round_down
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays, conclude
from layerwise._tool.debugtools.compare.arithmetic.sentinels import may_hold
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.arithmetic.totals import Moments, SideStatistics, Totals
from layerwise._tool.debugtools.compare.arithmetic.verdict import judge
from layerwise._tool.debugtools.compare.spec import MetricName

_WORK = np.dtype(np.float32)
Pair = tuple[DeviceTensor, DeviceTensor, Rule]
METRICS: frozenset[MetricName] = frozenset(("simple", "l2", "cosine_similarity", "psnr", "snr"))


def comparable(a: DeviceTensor, b: DeviceTensor, rule: Rule, metrics: Sequence[MetricName]) -> bool:
    """Whether the device's sums are enough: one shape, floats of up to 32 bits, no order statistics."""
    sums_suffice = rule.stat in ("elemwise", "max", "mean") and not rule.infinities_equal
    return a.shape == b.shape and {a.dtype, b.dtype} <= set(TYPES) and sums_suffice and METRICS.issuperset(metrics)


def compare_tensors(
    device: DeviceMetrics,
    pairs: Sequence[Pair],
    metrics: Sequence[MetricName] = ("simple",),
    depth: int = 1,
    types: Sequence[str] = (),
    known: Sequence[Totals] = (),
) -> list[Comparison]:
    """Compare pairs that are all `comparable`, nothing but the sums coming to the host.

    In one pass; a second one of those that may be over, where rounding of `depth` steps to `types` decides. known: what
    `measured` gave for these pairs before.
    """
    sums = known or measured(device, pairs)
    if any(rule.auto for _, _, rule in pairs):
        met = zip(pairs, sums, strict=True)
        pairs = [(a, b, _derived(a, b, rule, totals, depth, types)) for (a, b, rule), totals in met]
        sums = _counted(device, pairs, sums)
    found = []
    for (a, b, rule), totals in zip(pairs, sums, strict=True):
        result = Comparison((a.dtype, b.dtype), (a.shape, b.shape), rule)
        size = math.prod(a.shape)
        if may_hold(totals):
            arrays = fetch(device.stream, a), fetch(device.stream, b)
            found.append(compare_arrays(*arrays, rule, metrics=metrics, depth=depth, types=types))
            continue
        conclude(result, totals, size)
        result.verdicts = {name: judge(name, result, size) for name in metrics}
        found.append(result)
    return found


def compare_outputs(
    device: DeviceMetrics,
    first: Mapping[str, DeviceTensor],
    second: Mapping[str, DeviceTensor],
    rule: Rule,
    metrics: Sequence[MetricName] = ("simple",),
) -> dict[str, Comparison]:
    """Compare the tensors that both sides have, by name. What the device cannot judge is copied and judged here."""
    names = [name for name in first if name in second]
    there = [name for name in names if comparable(first[name], second[name], rule, metrics)]
    judged = compare_tensors(device, [(first[name], second[name], rule) for name in there], metrics)
    found = dict(zip(there, judged, strict=True))
    for name in names:
        if name not in found:
            a, b = fetch(device.stream, first[name]), fetch(device.stream, second[name])
            found[name] = compare_arrays(a, b, rule, metrics=metrics)
    return found


def measured(device: DeviceMetrics, pairs: Sequence[Pair]) -> list[Totals]:
    """The totals of pairs of one shape each, of types that the device takes, elements over their rules counted."""
    records = device.measure([_device_pair(a, b, rule) for a, b, rule in pairs])
    return [totals_of(record, math.prod(a.shape)) for (a, _, _), record in zip(pairs, records, strict=True)]


def _counted(device: DeviceMetrics, pairs: Sequence[Pair], sums: Sequence[Totals]) -> list[Totals]:
    """The totals, of which elements beyond the rules are counted, those of pairs without any left as they are."""
    beyond = [i for i, (_, _, rule) in enumerate(pairs) if not sums[i].within(rule.atol, rule.rtol)]
    again = dict(zip(beyond, measured(device, [pairs[i] for i in beyond]), strict=True))
    return [again.get(i) or replace(totals, over=0) for i, totals in enumerate(sums)]


def _derived(a: DeviceTensor, b: DeviceTensor, rule: Rule, totals: Totals, depth: int, types: Sequence[str]) -> Rule:
    return rule.derived((a.dtype, b.dtype), types, root_mean_square(totals.b.moments.squares, b.count), depth)


def _device_pair(a: DeviceTensor, b: DeviceTensor, rule: Rule) -> DevicePair:
    limits = round_down(rule.atol, _WORK), round_down(rule.rtol, _WORK)
    return DevicePair(a.address, b.address, math.prod(a.shape), (a.dtype, b.dtype), *limits)


def totals_of(record: Any, count: int) -> Totals:
    """What the host's pass would have given, from the kernel's RECORD of a pair of `count` elements."""
    sums, bad, first = (record[name].tolist() for name in ("sums", "bad", "first"))
    bounds = _bounds(record, first)
    total, squares = (sums[0], sums[3], sums[6], sums[9]), (sums[1], sums[4], sums[7], sums[10])
    moments = [_moments(*bounds[i], total[i], squares[i], count) for i in range(4)]
    a = _side(moments[0], sums[2], bad[:2], first[:2])
    b = _side(moments[1], sums[5], bad[2:], first[2:4])
    return Totals(a, b, moments[2], moments[3], difference=sums[7], product=sums[8], over=int(record["over"]))


def _bounds(record: Any, first: list[int]) -> list[tuple[float, int, float, int]]:
    """Low, its place, high, its place of both sides, the errors and the ratios. NaN wins, at its first place."""
    values, places = record["bounds"].tolist(), record["places"].tolist()
    found = []
    for i, nan in enumerate((first[0], first[2], first[4], first[5])):
        if nan != NEVER:
            found.append((math.nan, nan, math.nan, nan))
        else:
            low, high = (0 if place == NEVER else place for place in places[2 * i : 2 * i + 2])
            found.append((values[2 * i], low, -values[2 * i + 1], high))
    return found


def _moments(low: float, low_at: int, high: float, high_at: int, total: float, squares: float, count: int) -> Moments:
    moments = Moments()
    moments.low, moments.low_at, moments.high, moments.high_at = low, low_at, high, high_at
    moments.add(total, squares, count)
    return moments


def _side(moments: Moments, magnitude: float, bad: list[int], first: list[int]) -> SideStatistics:
    side = SideStatistics()
    side.moments, side.magnitude = moments, magnitude
    side.nans, side.infs = bad
    side.first_nan, side.first_inf = (-1 if place == NEVER else place for place in first)
    return side
