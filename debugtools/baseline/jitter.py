"""How far the error of a layer may be from what it was, though nothing but rounding is different.

Another machine, another number of threads or another version adds up in another order. That draws the rounding errors
anew: those of a layer come to about the same length again, which is the more certain the more elements there are. So
an error `e` over `n` elements is explained up to

    limit = sqrt((r e)^2 + f^2)        r = max(1.5, 1 + 6 / sqrt(n))        f = 5 u + c / 8

u is the unit roundoff in which sums are computed (FP32, or FP64 where all is in FP64), and 5 u what one step adds, as
`debugtools.compare.table.step` has it: an error that came about in steps behind it is in `e`. c is the unit roundoff of
the coarsest type so far, where that is less than FP32: some values are rounded to the other side there. A tensor of
few elements may have been near the truth by luck, so its `e` is at least a part of that of the tensors that it is made
from. The largest error of an element varies more than the length of them all: it may be `PEAK` times as large.

Where the sides agreed to the last bit, they either compute the same in the same way, and will do so on any machine: f
is u alone. Or they do not, and agreed by what this machine's kernels are: f is 4 u times the root of the nodes in a
row.

Where a sum cancels (a mean of values of both signs, a difference of alike ones), what rounding adds and what came from
before is of the size of its terms: u and the errors before it count as many times as those are larger than the result.

Measured on nine models (BERT, GPT-2, Llama, ViT, ConvNeXt, Swin, T5 and others) in FP16 against FP32, and on
onnxruntime against the reference evaluator, with onnxruntime's kernels for processors without AVX-512, without AVX2 and
without AVX, with 1 to 4 threads, and with moved inputs: f had to be 2.7 u at most, and the largest error was 0.69 of
its limit; in 36 random models of few elements 0.76, and with all rounding of FP16 drawn anew 0.93.
"""

import math
from collections.abc import Iterable

from msgspec import Struct

from layerwise._tool.debugtools.compare.arithmetic.tolerance import UNIT_ROUNDOFF, unit_roundoff

RATIO = 1.5
FEW = 6.0
PEAK = 3.0
OWN = 5.0
AGREED = 4.0
FLIPS = 1 / 8
_FLOAT = UNIT_ROUNDOFF["float32"]
_STEPS = {"int8": 2.0**-6, "uint8": 2.0**-6, "int4": 2.0**-3, "uint4": 2.0**-3, "int2": 0.5, "uint2": 0.5}
WHOLE = 0.01
_SUMS = frozenset({"Add", "AveragePool", "GlobalAveragePool", "Mean", "ReduceMean", "ReduceSum", "Sub", "Sum"})
_MOST = 1e9
_SINGLE = 16.0
"""By how many times its length an error may lie in one element where there was none."""


class Way(Struct, frozen=True):
    """How a tensor is made. coarsest: unit roundoff of the coarsest type so far; depth: nodes in a row behind it.

    alike: both sides make it by the same operators on the same backend. cancels: how many times larger than the result
    the terms of a sum are.
    """

    coarsest: float = _FLOAT
    depth: int = 1
    alike: bool = False
    cancels: float = 1.0


def limit(error: float, behind: float, size: int, way: Way) -> float:
    """Return up to where rounding explains a relative L2 error.

    error: what it was. behind: the largest error of the tensors that it is made from. size: elements of all iterations.
    """
    few = FEW / math.sqrt(max(1, size))
    base = max(error, min(1.0, few) * behind * way.cancels)
    return math.hypot(max(RATIO, 1 + few) * base, floor(way, exact=not error and not behind))


def cancelling(op: str, rms: float | None, terms: Iterable[float | None]) -> float:
    """Return how many times larger than its result the terms of a sum are, at least 1; 1 for other operators.

    rms, terms: root mean squares of the result and of the tensors that it is made from.
    """
    known = [term for term in terms if term]
    if op not in _SUMS or not known or rms is None:
        return 1.0
    return min(_MOST, max(1.0, max(known) / rms)) if rms else _MOST


def peak_limit(peak: float, error: float, limit: float, size: int) -> float:
    """Return the same for the largest error of an element over the reference's root mean square."""
    grown = limit / error if error else 1.0
    least = limit * min(_SINGLE, math.sqrt(max(1, size)))
    return max(PEAK * peak * max(1.0, grown / RATIO / PEAK), least)


def floor(way: Way, *, exact: bool) -> float:
    """Return what rounding adds to an error. exact: there was none, nor in what the tensor is made from."""
    unit = min(way.coarsest, _FLOAT) or _FLOAT
    if exact and way.alike:
        return unit
    flips = FLIPS * way.coarsest if way.coarsest > _FLOAT else 0.0
    return flips + (AGREED * math.sqrt(max(1, way.depth)) if exact else OWN) * unit * way.cancels


def coarseness(dtypes: tuple[str, str]) -> float:
    """The unit roundoff of the coarser of two types; of quantised integers about what one step is of their values; of
    other integers 0.
    """
    return max(unit_roundoff(dtypes), *(_STEPS.get(name, 0.0) for name in dtypes))


def is_whole(dtypes: tuple[str, str]) -> bool:
    """Whether values are whole numbers or truths, which do not round: of them those that differ are counted."""
    return not coarseness(dtypes)


def whole_limit(share: float, size: int) -> float:
    """Return up to what share whole numbers may differ: some hang on the last bit of what they are made from.

    share: what it was.
    """
    return 2 * share + WHOLE + 1 / max(1, size)
