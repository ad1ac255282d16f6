"""Elements that stand for "nothing here", such as those that an attention mask hides.

A sentinel is infinite, or lies at a value that masks are made of: 1e30 and beyond, a power of ten from 1e4 on, 3e4,
5e4, the largest FP16 value, or twice one of them (two masks added), each with what was added to it. It stands alone:
all other elements of the reference are smaller by eight binades. And it is the same on both sides: equal but for
rounding and for what was added to it, or, where the sides have different types or were made of such, as far out. What
is no sentinel is compared as ever.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, structs

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.fused import flat
from layerwise._tool.debugtools.compare.arithmetic.kernel import CHUNK, FloatKernel
from layerwise._tool.debugtools.compare.arithmetic.kinds import Arithmetic
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff
from layerwise._tool.debugtools.compare.arithmetic.totals import Number, Totals

GAP = 256.0
HUGE = 1e30
_LEAST = 9e3
_FEWEST = 2  # elements of a value that is huge on neither side
_MASKS = (3e4, 5e4, 65504.0, *(10.0**k for k in range(4, 30)))
_NEAR = 1 / 16
_ULPS = 8.0  # units roundoff by which two sentinels may differ


class Sentinels(Struct, frozen=True):
    """count: elements that are sentinels on both sides. value: the one furthest out. rest: the largest other.

    mixed: the sides compute in different types, and so may what masks are made of. blank: NaN on both sides, and equal
    infinities, are left out too.
    """

    count: int
    value: float
    values: tuple[float, ...]
    rest: float
    mixed: bool
    blank: bool = False


def masking(values: Array) -> Array | None:
    """Which values of one floating tensor a mask may be made of: far out, and far from all others; None if none."""
    size = np.abs(values)
    far = ~(size < _LEAST)
    if not far.any() or far.all():
        return None
    return far if size[far].min() >= GAP * size[~far].max() else None


def narrowed(narrow: Array, wide: Array) -> Array | None:
    """Which elements are a mask's on both of two floating sides, the first in a type that does not reach as far as the
    second, so that its own mask is nearer; None if none are.
    """
    far = masking(wide)
    if far is None or not all(_may_be(float(value)) for value in (wide[far].min(), wide[far].max())):
        return None
    least = max(_LEAST, GAP * float(np.abs(wide[~far]).max()))
    found: Array = far & (np.abs(narrow) >= least) & (np.sign(narrow) == np.sign(wide))
    return found


def may_hold(totals: Totals) -> bool:
    """Whether a pair may hold sentinels, by the bounds of the reference alone."""
    side = totals.b
    return bool(side.infs or side.nans) or any(_may_be(value) for value in (side.moments.low, side.moments.high))


def find_sentinels(a: Array, b: Array, totals: Totals, unit: float, types: Sequence[str] = ()) -> Sentinels | None:
    """Return what is a sentinel in both of two floating arrays of one shape; None if nothing is.

    totals: of the pair. unit: the coarser unit roundoff of the two types. types: the coarsest that each side rounded to
    on the way.
    """
    values = [value for value in _extremes(b, totals) if _may_be(value)]
    if not values:
        return None
    members, huge, least, rest = 0, 0, math.inf, 0.0
    for other, chunk in zip(_doubles(a), _doubles(b), strict=True):
        mask = _among(chunk, values)
        members += int(np.count_nonzero(mask))
        huge += int(np.count_nonzero(mask & (np.abs(other) >= HUGE) & (np.sign(other) == np.sign(chunk))))
        size = np.abs(chunk)
        least = min(least, float(size.min(where=mask, initial=math.inf)))
        rest = max(rest, float(size.max(where=~mask & (size == size), initial=0.0)))
    narrower = any(unit_roundoff((kind,)) > unit for kind in types)
    mixed = a.dtype != b.dtype or len(set(types)) > 1 or narrower
    few = members < _FEWEST and huge < members
    if rest * GAP > least or (least < HUGE and (few or not (rest or mixed))):
        return None
    furthest = max(values, key=abs)
    found = Sentinels(0, furthest, tuple(values), rest, mixed)
    pairs = zip(_doubles(a), _doubles(b), strict=True)
    count = sum(int(np.count_nonzero(_alike(x, y, found, unit))) for x, y in pairs)
    return structs.replace(found, count=count) if count else None


def with_blanks(found: Sentinels | None, a: Array, b: Array, totals: Totals, unit: float) -> Sentinels | None:
    """The sentinels with elements that are NaN on both sides, or infinite alike, where there are any."""
    if not (totals.a.nans + totals.a.infs and totals.b.nans + totals.b.infs):
        return found
    more = structs.replace(found or Sentinels(0, math.nan, (), 0.0, False), blank=True)
    pairs = zip(_doubles(a), _doubles(b), strict=True)
    count = sum(int(np.count_nonzero(_alike(x, y, more, unit))) for x, y in pairs)
    return structs.replace(more, count=count) if count else None


def fuse_others(
    a: Array, b: Array, how: Arithmetic, tolerances: tuple[float, float], found: Sentinels, unit: float
) -> Totals:
    """Return the totals of two floating arrays with 0 in place of the sentinels; tolerances: absolute, relative."""
    first, second = flat(a), flat(b)
    with np.errstate(all="ignore"):
        kernel = FloatKernel(how, *tolerances, False)
        for at in range(0, a.size, CHUNK):
            x, y = np.array(first[at : at + CHUNK]), np.array(second[at : at + CHUNK])
            mask = _alike(x.astype(np.float64), y.astype(np.float64), found, unit)
            x[mask] = y[mask] = 0
            kernel.take(x, y, at, False)
    return kernel.totals


def _extremes(b: Array, totals: Totals) -> Sequence[Number]:
    """The values of the reference that are furthest out: infinities, and the least and the largest finite one."""
    side = totals.b
    if not side.nans + side.infs:
        return side.moments.low, side.moments.high
    found: set[Number] = set()
    for chunk in _doubles(b):
        finite = np.isfinite(chunk)
        found |= {float(value) for value in np.unique(chunk[np.isinf(chunk)])}
        found |= {
            float(chunk.min(where=finite, initial=math.inf)) if finite.any() else 0.0,
            float(chunk.max(where=finite, initial=-math.inf)) if finite.any() else 0.0,
        }
    finite_ones = [value for value in found if math.isfinite(value)] or [0.0]
    return min(finite_ones), max(finite_ones), *(value for value in found if math.isinf(value))


def _may_be(value: Number) -> bool:
    size = abs(value)
    if not size >= _LEAST:
        return False
    return size >= HUGE or any(abs(size - mask * k) <= _NEAR * mask * k for mask in _MASKS for k in (1, 2))


def _among(x: Array, values: Sequence[Number]) -> Array:
    mask = np.zeros(x.shape, np.bool_)
    with np.errstate(all="ignore"):
        for value in values:
            if abs(value) >= HUGE:
                mask |= np.copysign(x, value) == x if math.isinf(value) else x * np.sign(value) >= HUGE
                mask &= np.abs(x) >= HUGE
            else:
                for centre in (value, value / 2):
                    mask |= np.abs(x - centre) <= _NEAR * abs(centre)
    return mask


def _alike(x: Array, y: Array, found: Sentinels, unit: float) -> Array:
    """Which elements are sentinels on both sides.

    A converter writes -1e4 or -65504 into an FP16 model for the -3.4e38 of the FP32 one; where a session then computes
    in FP32, the tensors have one type, and the mask is still the narrow one.
    """
    with np.errstate(all="ignore"):
        same = (x == y) | (np.isfinite(y) & (np.abs(x - y) <= _ULPS * unit * np.abs(y) + found.rest))
        same |= (np.isinf(x) | np.isinf(y)) & (np.maximum(x, y) <= -HUGE)
        if found.mixed:
            bare = not found.rest and abs(found.value) < HUGE  # a mask of its own, in the narrower type
            least = HUGE if bare else max(_LEAST, GAP * found.rest)
            same |= (np.sign(x) == np.sign(y)) & (np.abs(x) >= least)
        mask: Array = _among(y, found.values) & same
        if found.blank:
            mask |= (np.isnan(x) & np.isnan(y)) | (np.isinf(y) & (x == y))
    return mask


def _doubles(values: Array) -> Iterator[Any]:
    every = flat(values)
    for at in range(0, values.size, CHUNK):
        yield every[at : at + CHUNK].astype(np.float64)
