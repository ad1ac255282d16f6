"""How far a tensor is from the reference's, counted in what rounding explains."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison, only_hidden
from layerwise._tool.debugtools.compare.arithmetic.kernel import dot
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, rounding_bound
from layerwise._tool.debugtools.compare.arithmetic.totals import worst
from layerwise._tool.debugtools.compare.observing.canary import same_bits

_RULE = Rule(infinities_equal=True)
_FLOAT_BOUND = rounding_bound(("float32",))


@dataclass(frozen=True, slots=True)
class Error:
    """A tensor's error. rel: relative L2 (inf where shapes or types forbid a number); abs: the largest.

    bound: relative error that rounding in the tensor's type explains, 0 where nothing is rounded (integers, bool,
    strings). coarse: the same with rounding to lower types inside the region. condition: what long sums and rounding
    the inputs explain, 0 where nobody looked. onset: 'overflow' or 'nan' where values are not finite that are in the
    reference. note: what forbids a number.
    """

    rel: float = 0.0
    abs: float = 0.0
    bound: float = 0.0
    coarse: float = 0.0
    condition: float = 0.0
    onset: str = ""
    note: str = ""

    @property
    def units(self) -> float:
        """The error in bounds, exact values counted as float32. Beyond 100 % all errors are alike."""
        if math.isinf(self.rel):
            return math.inf
        return min(self.rel, 1.0) / (max(self.coarse, self.condition) or _FLOAT_BOUND)

    @property
    def times(self) -> float | None:
        """How many times what rounding in the tensor's type explains; None where that is nothing, or no number."""
        return self.rel / self.bound if self.bound and math.isfinite(self.rel) else None

    @property
    def beyond(self) -> bool:
        """Whether rounding in the tensor's type does not explain it."""
        return bool(self.onset) or self.rel > self.bound

    @property
    def conditioned(self) -> bool:
        """Whether rounding the inputs explains it, though rounding the result does not."""
        return not self.onset and self.bound < self.rel <= self.condition

    def within(self, bound: float) -> "Error":
        """The error, with at least `bound` of it (relative L2) explained."""
        return replace(self, bound=max(self.bound, bound), coarse=max(self.coarse, bound))

    def allowing(self, kinds: Sequence[str], depth: int) -> "Error":
        """The error, with `depth` roundings to types that the whole suspect was asked to compute in explained."""
        more = rounding_bound(kinds, depth) if self.bound else 0.0
        return self.within(more) if more else self


def error_of(x: Array, reference: Array, low: Iterable[str], depth: int, types: Sequence[str] = ()) -> Error:
    """Return the error of `x`; low: further dtypes that it was rounded to; depth: rounded steps behind it.

    types: the coarsest that each side rounded to on the way.
    """
    if same_bits(x, reference):
        bound, coarse = _bounds((dtype_name(x),), tuple(low), depth)
        return Error(bound=bound, coarse=coarse)
    return error_from(compare_arrays(x, reference, _RULE, metrics=(), types=types), x, reference, low, depth)


def error_from(result: Comparison, x: Array, reference: Array, low: Iterable[str], depth: int) -> Error:
    """The same for tensors that were compared already."""
    bound, coarse = _bounds(result.dtypes, tuple(low), depth)
    if result.totals is None:
        size = 0.0 if result.over == 0 else math.inf
        return Error(size, size, bound, coarse, note=result.note)
    onset = _onset(result)
    rel, largest = result.rel_l2, float(worst(result.totals.abs))
    if rel is None or not math.isfinite(rel) or not math.isfinite(largest):
        rel, largest = relative_l2(x, reference)
    return Error(rel, largest, bound, coarse, onset=onset)


@lru_cache(4096)
def _bounds(dtypes: tuple[str, ...], low: tuple[str, ...], depth: int) -> tuple[float, float]:
    bound = rounding_bound(dtypes, depth)
    return bound, rounding_bound((*dtypes, *low), depth) if bound else 0.0


def _onset(result: Comparison) -> str:
    mine, reference = result.sides
    if mine is None or reference is None or only_hidden(result):
        return ""
    if mine.infs > reference.infs:
        return "overflow"
    return "nan" if mine.nans > reference.nans else ""


def relative_l2(x: Array, reference: Array) -> tuple[float, float]:
    """Relative L2 and largest error, alike NaN and Inf left out; inf where only one side is finite."""
    if (np.isfinite(x) != np.isfinite(reference)).any():
        return math.inf, math.inf
    kind = np.complex128 if x.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        a, b = x.astype(kind).reshape(-1), reference.astype(kind).reshape(-1)
        scale = _norm(b[np.isfinite(b)])
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        a, b = a[~same], b[~same]
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            return math.inf, math.inf
        size = _norm(a - b)
    largest = float(np.abs(a - b).max(initial=0.0))
    return (size / scale if scale else math.inf if size else 0.0), largest


def _norm(values: Array) -> float:
    magnitude = np.abs(values)
    return math.sqrt(dot(magnitude, magnitude))
