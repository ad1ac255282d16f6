"""How far the error of a layer may be from what it was, though nothing but rounding is different.

Another machine, another number of threads or another version adds up in another order. That draws the rounding errors
anew: those of a layer come to about the same length again, which is the more certain the more elements there are. So
an error `e` over `n` elements is explained up to

    limit = sqrt((r e)^2 + f^2)        r = 1.5 (1 + 4 / sqrt(n))        f = 4 u sqrt(depth) + c / 8

u is the unit roundoff in which sums are computed (FP32, or FP64 where all is in FP64), depth the number of nodes in a
row: what correct evaluations may differ by where the sides happened to agree. c is the unit roundoff of the coarsest
type so far, where that is less than FP32: some values are rounded to the other side there. A tensor of few elements may
have been near the truth by luck, so its `e` is at least a part of that of the tensors that it is made from. The largest
error of an element varies more than the length of them all: it may be `PEAK` times as large.
"""

import math

from layerwise._tool.debugtools.compare.arithmetic.tolerance import UNIT_ROUNDOFF, unit_roundoff

RATIO = 1.5
FEW = 4.0
PEAK = 3.0
FLOOR = 4.0
FLIPS = 1 / 8
_FLOAT = UNIT_ROUNDOFF["float32"]
_SINGLE = 16.0
"""By how many times its length an error may lie in one element where there was none."""


def limit(error: float, behind: float, size: int, coarsest: float, depth: int) -> float:
    """Return up to where rounding explains a relative L2 error.

    error: what it was. behind: the largest error of the tensors that it is made from. size: elements of all
    iterations. coarsest: unit roundoff of the coarsest type so far.
    """
    few = FEW / math.sqrt(max(1, size))
    base = max(error, min(1.0, few) * behind)
    return math.hypot(RATIO * (1 + few) * base, floor(coarsest, depth))


def peak_limit(peak: float, error: float, limit: float, size: int) -> float:
    """Return the same for the largest error of an element over the reference's root mean square."""
    grown = limit / error if error else 1.0
    least = limit * min(_SINGLE, math.sqrt(max(1, size)))
    return max(PEAK * peak * max(1.0, grown / RATIO / PEAK), least)


def floor(coarsest: float, depth: int) -> float:
    """Return by how much correct evaluations differ whose sides agreed."""
    unit = min(coarsest, _FLOAT) or _FLOAT
    return FLOOR * unit * math.sqrt(max(1, depth)) + (FLIPS * coarsest if coarsest > _FLOAT else 0.0)


def coarseness(dtypes: tuple[str, str]) -> float:
    """The unit roundoff of the coarser of two types; of integers of 8 bits that of their steps, of others 0."""
    steps = [0.0 if not name.endswith(("int8", "int4")) else UNIT_ROUNDOFF["bfloat16"] for name in dtypes]
    return max(unit_roundoff(dtypes), *steps)
