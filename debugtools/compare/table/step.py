"""What rounding explains of a tensor's error where the errors of what it is made from are known.

A step adds the error of its own rounding, up to `_OWN` units roundoff and more for long sums (most where other
libraries add them up), to what it passes on of its inputs' errors. Operators that pass errors on as they are (sums,
products, copies) may enlarge them `_STEADY` times, others, and those whose input is dominated by single large values or
that cancel, `_WILD` times.
"""

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.metrics import rms_of
from layerwise._tool.debugtools.compare.arithmetic.tolerance import SMALLEST, unit_roundoff
from layerwise._tool.debugtools.compare.rows import LayerRow, SideStats

_OWN = 5.0
_SUMS = 1 / 16  # of the square root of a sum's length
_BLOCKED_SUMS = 1 / 4  # the same of convolutions, where one side computes them in another layout
_OTHER_SUMS = 2.0  # the same where the sides run on different backends
_EQUAL_SUMS = 1 / 8  # of a sum's length, where its terms are equal
_STEADY, _WILD = 3.0, 16.0
_PEAK = 50.0  # largest value over the root mean square from which on single values dominate
_CANCELS = 0.5
_ONE_SIDED = 0.9  # of the root mean square is the mean
_CONSTANT = 1e-4  # of the root mean square lies between the smallest and the largest value
MOVED, LUCK = 2.0, 14.0
"""A result may be off by as many times as rounding its inputs once moves it, and by more where it has few elements:
`LUCK` over the square root of their number."""
_STEADY_OPS = frozenset({
    "Add", "AveragePool", "BiasGelu", "Cast", "Clip", "Concat", "Conv", "ConvTranspose", "DepthToSpace", "Dropout",
    "Elu", "Erf", "Expand", "FastGelu", "Flatten", "FusedConv", "FusedGemm", "FusedMatMul", "Gather",
    "GatherElements", "GatherND", "Gelu", "Gemm", "GlobalAveragePool", "GlobalMaxPool", "HardSigmoid", "HardSwish",
    "Identity", "LeakyRelu", "MatMul", "Max", "MaxPool", "Mean", "Min", "Mul", "Neg", "Pad", "QuickGelu", "Relu",
    "Reshape", "Resize", "Sigmoid", "Slice", "SpaceToDepth", "Split", "Squeeze", "Sum", "Tanh", "Tile", "Transpose",
    "Unsqueeze", "Upsample", "Where",
})  # fmt: skip
_NEARER = frozenset({"Abs", "Clip", "Elu", "LeakyRelu", "Max", "Min", "Relu", "Tanh"})
"""Operators that bring no two numbers farther apart, but may leave small ones alone."""
_SUMMING, _PRODUCTS = frozenset({"Add", "Sum"}), frozenset({"FusedMatMul", "Gemm", "MatMul"})


class Scale(Struct, frozen=True):
    """Of the reference's values, sentinels left out. rms: root mean square; peak: the largest magnitude over it;
    level: that of the mean over it; spread: the largest less the smallest value over it.
    """

    rms: float
    peak: float
    level: float = 0.0
    spread: float = math.inf

    @property
    def one_sided(self) -> bool:
        """Whether the values are of one sign and near each other, as sums of terms of one sign are: their roundings do
        not average out, and differ by the order of the terms.
        """
        return self.level >= _ONE_SIDED

    @property
    def constant(self) -> bool:
        """Whether all values are the same, rounding aside."""
        return self.spread <= _CONSTANT


def scale_of(result: Comparison) -> Scale:
    """The scale of a compared tensor; NaN where it has none."""
    totals = result.totals
    if totals is None or not totals.counted[1].count:
        return Scale(math.nan, math.nan)
    moments = totals.counted[1]
    rms = math.sqrt(moments.squares / moments.count) if math.isfinite(moments.squares) else math.nan
    return _scale(rms, float(moments.low), float(moments.high), moments.total / moments.count)


def scale_of_row(row: LayerRow) -> Scale:
    """The same of a row that an earlier attempt made."""
    stats: SideStats | None = row.stats[1] if len(row.stats) > 1 else None
    if stats is None:
        return Scale(math.nan, math.nan)
    return _scale(math.hypot(stats.mean, stats.std), float(stats.min), float(stats.max), stats.mean)


def scale_of_array(array: Array) -> Scale:
    """The same of an array; NaN where a value is not finite."""
    rms = rms_of(array) if array.size else math.nan
    if not math.isfinite(rms):
        return Scale(math.nan, math.nan)
    return _scale(rms, float(array.min()), float(array.max()), float(np.mean(array, dtype=np.float64)))


def _scale(rms: float, low: float, high: float, mean: float) -> Scale:
    return Scale(rms, max(abs(low), abs(high)) / rms, abs(mean) / rms, (high - low) / rms) if rms else Scale(rms, 0.0)


def step_bound(
    types: Iterable[str], terms: int, steps: int, *, one_backend: bool, blocked: bool = False, one_sided: bool = False,
    equal: bool = False,
) -> float:  # fmt: skip
    """Return the relative L2 error that rounding in `steps` nodes explains, their inputs being the same.

    types: what they round to; terms: of the longest sum; one_backend: both sides run on the same one; blocked: one of
    them computes a convolution in another layout; one_sided: what they make is (`Scale.one_sided`).

    equal: the terms of a sum are equal. Then between two powers of two each addition is rounded by the same amount, and
    the error grows with the number of additions, not with its root. A kernel that adds four products at a time makes
    terms / 4 additions. Their partial sums are half of the result on average, and each is off by up to one unit
    roundoff of itself: terms / 8 units roundoff of the result.
    """
    apart = not one_backend or (one_sided and terms > 1)
    sums = _OTHER_SUMS if apart else _BLOCKED_SUMS if blocked else _SUMS
    alike = _EQUAL_SUMS * terms if equal and terms > 1 else 0.0
    return unit_roundoff(types) * (_OWN + math.sqrt(max(0, steps - 1)) + sums * math.sqrt(terms) + alike)


def are_steady(ops: Iterable[str]) -> bool:
    """Whether operators pass errors on as they are, so that roundings between them do not grow."""
    return all(op in _STEADY_OPS for op in ops)


def nudges(ops: Iterable[str], terms: int, *, one_backend: bool) -> float:
    """Return by how many roundings inputs are to be moved to see what a node makes of its own sums' rounding.

    A normalisation takes a mean off, in which that of its elements averages out. terms: of the longest sum.
    """
    sums = _SUMS if one_backend else _OTHER_SUMS
    return max(1.0, sums * math.sqrt(terms) / 2) if any("Normalization" in op for op in ops) else 1.0


def smallest(types: Iterable[str]) -> float:
    """The root mean square error of numbers that are too small for one of `types`."""
    return max((SMALLEST.get(name, 0.0) for name in types), default=0.0)


def lost_below(reference: Array, types: Iterable[str]) -> float:
    """Return the relative L2 error that comes from numbers too small for one of `types`."""
    floor = smallest(types)
    rms = rms_of(reference) if floor else 0.0
    return floor / rms if rms else 0.0


def explained_error(
    result: Comparison, ops: Collection[str], rounding: float, error: float, inputs: Sequence[Scale], floor: float,
    terms: int = 1,
) -> float | None:  # fmt: skip
    """Return the relative L2 error that a step explains; None where rounding is not asked about.

    ops: the operators that make the tensor; rounding: its own. error: the largest of its inputs', inputs: their scales.
    floor: root mean square error of numbers that are lost for being too small. terms: of the longest sum.
    """
    rule, own = result.rule, scale_of(result)
    if rule.bound is None or not rounding:
        return None
    tame = _STEADY_OPS.issuperset(ops) and all(scale.peak <= _PEAK for scale in inputs)
    tame = tame and (_SUMMING.isdisjoint(ops) or not any(own.rms < _CANCELS * scale.rms for scale in inputs))
    lost = floor / own.rms if own.rms else 0.0
    times = (_STEADY if tame else _WILD) * _cancelling(ops, terms, inputs, own)
    if _NEARER.issuperset(ops) and own.rms:
        times = max(times, *(scale.rms / own.rms for scale in inputs if math.isfinite(scale.rms)), 0.0)
    return rounding + times * error + lost


def _cancelling(ops: Collection[str], terms: int, inputs: Sequence[Scale], own: Scale) -> float:
    """By how much a product of two tensors is smaller than that of unrelated numbers of their scales; at least 1.

    Their errors are unrelated, and so are passed on enlarged by that.
    """
    if len(inputs) != 2 or not _PRODUCTS.issuperset(ops):
        return 1.0
    expected = inputs[0].rms * inputs[1].rms * math.sqrt(terms)
    return max(1.0, expected / own.rms) if own.rms and math.isfinite(expected) else 1.0
