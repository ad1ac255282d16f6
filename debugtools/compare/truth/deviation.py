"""How far a tensor is from the truth, in units of what rounding explains.

Two numbers are taken, since they tell different faults. The first is the length of the error over the length of the
truth (relative L2), which rounding makes

    scatter = sqrt(r u^2 + n a^2 / 6)

large: r roundings of unit roundoff u, and a sum of n terms that are added up one after the other with unit roundoff a
(the rounded partial sums of n random or of n alike terms come to sqrt(n / 6) a and sqrt(n) a / 3 at most). Sums are
counted in FP32 where tensors are in FP16 or less, as engines compute them. On a CPU they are added up in blocks, which
was measured to make far less of long sums: there n / 6 is n / 40, and from 512 terms on that of 512 times the root of
how many times longer the sum is. (A sum without blocks reaches twice that, and 4 times from 10,000 terms on.) The
second is the part of the error that goes along with the truth, a common factor: (error . truth) / (truth . truth). The
rounding of long sums averages out in it, so of N elements rounding explains

    common = sqrt(r) u + scatter / sqrt(N)

(`debugtools.compare.table.step` asks another question: how far two sides may differ whose inputs differ already.) The
larger of both quotients counts. Where a tensor is so small that its type has fewer digits left, half the spacing of
the type's smallest numbers is added to each element.
"""

import math
from collections.abc import Iterable, Iterator

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.kernel import dot
from layerwise._tool.debugtools.compare.arithmetic.sentinels import narrowed
from layerwise._tool.debugtools.compare.arithmetic.tolerance import UNIT_ROUNDOFF

_MASK = 1e30
_PART = 1 << 15  # elements that are looked at together
_SPACING = {"float64": 2.0**-1074, "float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133}
_LARGEST = {"float64": 1.797e308, "float32": 3.402e38, "float16": 65504.0, "bfloat16": 3.389e38}
_BLOCK = 512
_FLOAT = UNIT_ROUNDOFF["float32"]
ROUNDOFF = {**UNIT_ROUNDOFF, "tf32": 2.0**-11, "int8": 2.0**-5}
"""Unit roundoff by type; of int8 half a step over the RMS, where the largest value is 8 times the RMS."""


class Unit(Struct, frozen=True):
    """What rounding explains of a region. roundings: how many follow each other; terms: of its longest sum.

    kind: the coarsest type that is rounded to; moved: how far (relative L2) rounding the inputs once moves the result,
    where that was looked at. blocks: sums are added up in blocks.
    """

    kind: str
    roundings: int = 1
    terms: int = 1
    moved: float = 0.0
    blocks: bool = False

    @property
    def roundoff(self) -> float:
        return ROUNDOFF.get(self.kind, _FLOAT)

    @property
    def scatter(self) -> float:
        """Relative L2 error."""
        adding = min(self.roundoff, _FLOAT)
        sums = _in_blocks(self.terms) if self.blocks else self.terms / 6
        return max(math.sqrt(self.roundings * self.roundoff**2 + sums * adding**2), self.moved)

    def common(self, size: int) -> float:
        """Common relative error of `size` elements."""
        return math.sqrt(self.roundings) * self.roundoff + self.scatter / math.sqrt(max(1, size))


def _in_blocks(terms: int) -> float:
    """What rounding a sum of so many terms explains, in squared unit roundoffs."""
    return min(terms, _BLOCK) / 40 * math.sqrt(max(1.0, terms / _BLOCK))


class Deviation(Struct, frozen=True):
    """A tensor against the truth. scatter: relative L2 error; common: the part of it that is a common factor.

    size: elements that count; floor: what spacing explains, as a relative L2 error. broken: values that are not finite
    on one side, or not alike.
    """

    scatter: float = 0.0
    common: float = 0.0
    size: int = 0
    floor: float = 0.0
    broken: int = 0

    def times(self, unit: Unit) -> float:
        """How many times what rounding explains it is; inf where values are not finite that should be."""
        if self.broken:
            return math.inf
        if self.scatter == 0:
            return 0.0
        if math.isinf(self.scatter):
            return math.inf
        return max(self.scatter / (unit.scatter + self.floor), abs(self.common) / (unit.common(self.size) + self.floor))


def deviation(x: Array, truth: Array, kind: str) -> Deviation:
    """Return how far `x` is from `truth` (FP64, of the same shape). kind: the coarsest type behind x.

    Masks are left out: what is enormous (from 1e30 on, or infinite in the truth) on one side, where the other is as
    large as its type allows, with the same sign; NaN on both; and in FP16 what stands for a mask of a wider type.
    """
    most = min(_LARGEST.get(name, 1e308) for name in (kind, dtype_name(x)))
    left = narrowed(x.astype(np.float64), truth) if most == _LARGEST["float16"] else None
    if left is not None:
        x, truth = x[~left], truth[~left]
    size, broken, scale = 0, 0, 0.0
    with np.errstate(all="ignore"):
        for a, b in _kept(x, truth, most / 2):
            size += a.size
            broken += int(np.count_nonzero(~(np.isfinite(a) & np.isfinite(b))))
            scale = max(scale, float(np.abs(b).max(initial=0.0)))
        if broken or not size:
            return Deviation(size=size, broken=broken)
        if scale == 0:
            off = any((a != b).any() for a, b in _kept(x, truth, most / 2))
            return Deviation(math.inf if off else 0.0, size=size)
        squares = errors = along = 0.0
        for a, b in _kept(x, truth, most / 2):
            error, right = (a - b) / scale, b / scale
            squares, errors = squares + dot(right, right), errors + dot(error, error)
            along += dot(error, right)
    spacing = _SPACING.get(kind, 0.0) / scale * math.sqrt(size / squares)
    return Deviation(math.sqrt(errors / squares), along / squares, size, spacing)


def _kept(x: Array, truth: Array, large: float) -> Iterator[tuple[Array, Array]]:
    """What is no mask of both, in FP64, a part at a time."""
    flat, right = np.ascontiguousarray(x).reshape(-1), np.ascontiguousarray(truth).reshape(-1)
    for start in range(0, flat.size, _PART):
        a, b = flat[start : start + _PART].astype(np.float64), right[start : start + _PART]
        if np.abs(a).max() < _MASK and np.abs(b).max() < _MASK:  # which NaN is not
            yield a, b
        else:
            kept = ~_masks(a, b, large)
            yield a[kept], b[kept]


def _masks(x: Array, truth: Array, large: float) -> Array:
    size, other = np.abs(x), np.abs(truth)
    enormous = (~(other < _MASK) & ~(size < large)) | (np.isfinite(x) & ~(size < _MASK) & ~(other < large))
    found: Array = (enormous & (np.sign(x) == np.sign(truth))) | (np.isnan(x) & np.isnan(truth))
    return found


def coarsest(kinds: Iterable[str]) -> str:
    """Return the type with the largest unit roundoff; "" if none of them rounds."""
    return max((kind for kind in kinds if kind in ROUNDOFF), key=lambda kind: ROUNDOFF[kind], default="")
