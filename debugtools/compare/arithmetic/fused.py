"""One pass over a pair of tensors, in chunks that stay in the cache, that gives the sums all metrics follow from.

No temporary is larger than a chunk. Errors of floats are computed in the dtype that Polygraphy uses, so maxima agree to
the last bit; sums are in float64. Chunks whose bits agree on both sides cost about a third.
"""

from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.integers import IntKernel, WideKernel
from layerwise._tool.debugtools.compare.arithmetic.kernel import CHUNK, FloatKernel, dot
from layerwise._tool.debugtools.compare.arithmetic.kinds import Arithmetic
from layerwise._tool.debugtools.compare.arithmetic.moments import SideStatistics, Totals

_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def fuse(a: Array, b: Array, how: Arithmetic, atol: float, rtol: float, *, infinities_equal: bool = False) -> Totals:
    """Return the totals of two arrays of one shape (any layout; numbers or bool of the kinds in `kinds`).

    An element is `over` when neither its absolute error is at most `atol` nor its relative error, against `b`, is at
    most `rtol`; NaN errors are over.
    """
    plain = a.flags.c_contiguous and b.flags.c_contiguous
    bits: Any = _BITS.get(a.dtype.itemsize) if plain and a.dtype == b.dtype else None
    first = _flat(a)
    second = first if a is b else _flat(b)
    with np.errstate(all="ignore"):
        kernel: FloatKernel = _KERNELS[how.kind](how, atol, rtol, infinities_equal)
        for at in range(0, a.size, CHUNK):
            chunk = first[at : at + CHUNK]
            kernel.take(chunk, chunk if second is first else second[at : at + CHUNK], at, bits)
    return kernel.totals


def measure(a: Array, how: Arithmetic) -> SideStatistics:
    """Return the statistics of one array alone."""
    return fuse(a, a, how, 0.0, 0.0).a


def sum_of_squares(a: Array, how: Arithmetic) -> float:
    """Return the sum of squared magnitudes of one array, in float64."""
    flat = _flat(a)
    with np.errstate(all="ignore"):
        kernel: FloatKernel = _KERNELS[how.kind](how, 0.0, 0.0, False)
        return sum(kernel.squares(flat[at : at + CHUNK]) for at in range(0, a.size, CHUNK))


def _flat(a: Array) -> Any:
    return a.reshape(-1) if a.flags.c_contiguous else a.flat


class _ComplexKernel(FloatKernel):
    """Complex pairs: errors are magnitudes of differences, statistics those of the magnitudes."""

    def __init__(self, how: Arithmetic, atol: float, rtol: float, infinities_equal: bool) -> None:
        super().__init__(Arithmetic("float", np.dtype(np.float64), how.epsilon), atol, rtol, infinities_equal)

    def squares(self, x: Array) -> float:
        magnitude = np.abs(x.astype(np.complex128))
        return dot(magnitude, magnitude)

    def take(self, x: Array, y: Array, at: int, bits: Any) -> None:
        totals = self.totals
        left, right = np.abs(x.astype(np.complex128)), np.abs(y.astype(np.complex128))
        error = np.abs(x.astype(np.complex128) - y)
        self._side(totals.a, left, left, at)
        low, high = self._side(totals.b, right, right, at)
        totals.product += float(np.vdot(y, x - y).real)
        ratio = np.divide(error, self._denominator(right, low, high))
        self._errors(error, error.copy(), ratio, at)


_KERNELS: dict[str, Any] = {"float": FloatKernel, "int": IntKernel, "wide": WideKernel, "complex": _ComplexKernel}
