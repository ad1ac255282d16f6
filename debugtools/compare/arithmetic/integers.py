"""Exact arithmetic for integers of all widths, and bool."""

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.kernel import FloatKernel, dot
from layerwise._tool.debugtools.compare.arithmetic.kinds import Arithmetic

_MOST = np.uint64(2**64 - 1)


class IntKernel(FloatKernel):
    """Integers of up to 32 bits, and bool: int64 holds every difference exactly."""

    def __init__(self, how: Arithmetic, atol: float, rtol: float, infinities_equal: bool) -> None:
        super().__init__(Arithmetic(how.kind, np.dtype(np.int64)), atol, rtol, infinities_equal)

    def _take_different(self, x: Array, y: Array, at: int) -> None:
        totals, n = self.totals, x.size
        left, right = self._lift(x, 0), self._lift(y, 1)
        left64, right64 = self._double(left, 0), self._double(right, 1)
        self._side(totals.a, left, left64, at)
        self._side(totals.b, right, right64, at)
        error = np.abs(np.subtract(left, right, out=self._buffer(2, n)), out=self._buffer(2, n))
        error64 = np.subtract(left64, right64, out=self.scratch.doubles[2][:n])
        totals.product += dot(error64, right64)
        ratio = np.divide(error, np.abs(right, out=self._buffer(3, n)), out=self.scratch.doubles[3][:n])
        self._errors(error, np.abs(error64, out=error64), ratio, at)

    def _count_over(self, error: Array, ratio: Array) -> int:
        within = error <= _floor(self.atol)
        within |= ratio <= self.rtol
        return error.size - int(np.count_nonzero(within))


class WideKernel(IntKernel):
    """64-bit integers, signed and unsigned mixed too: magnitudes in uint64, exact.

    One case saturates: uint64 against a negative int64 more than 2^64 - 1 apart.
    """

    def _take_different(self, x: Array, y: Array, at: int) -> None:
        totals, n = self.totals, x.size
        left64, right64 = self._as_double(x, 0), self._as_double(y, 1)
        self._side(totals.a, x, left64, at)
        self._side(totals.b, y, right64, at)
        error, sign = wide_difference(x, y)
        size = np.where(error == _MOST, np.abs(left64 - right64), error)  # beyond uint64, doubles still tell the size
        error64 = np.multiply(size, sign, out=self.scratch.doubles[2][:n])
        totals.product += dot(error64, right64)
        ratio = np.divide(error, wide_magnitude(y), out=self.scratch.doubles[3][:n])
        self._errors(error, np.abs(error64, out=error64), ratio, at)

    def _lift(self, values: Array, index: int) -> Array:
        return values

    def _as_double(self, values: Array, index: int) -> Array:
        double = self.scratch.doubles[index][: values.size]
        np.copyto(double, values, casting="unsafe")
        return double

    def _double(self, values: Array, index: int) -> Array:
        return values if values.dtype == np.float64 else self._as_double(values, index)


def wide_magnitude(values: Array) -> Array:
    """|values| as uint64, exact for the lowest int64 too."""
    if values.dtype.kind in "bu":
        return values.astype(np.uint64)
    bits = values.astype(np.int64).view(np.uint64)
    return np.where(values < 0, np.uint64(0) - bits, bits)


def wide_difference(x: Array, y: Array) -> tuple[Array, Array]:
    """|x - y| as uint64 and the sign of x - y (1.0 or -1.0) for integers of any width."""
    left, right = wide_magnitude(x), wide_magnitude(y)
    negative_x, negative_y = x < 0, y < 0
    total = left + right
    total[total < left] = _MOST
    gap = np.where(left >= right, left - right, right - left)
    opposed = negative_x != negative_y
    sign = np.where(np.where(opposed, negative_y, (left >= right) != negative_x), 1.0, -1.0)
    return np.where(opposed, total, gap), sign


def _floor(tolerance: float) -> int | float:
    """The largest integer error that a tolerance admits: compared as integers, it is exact."""
    return int(tolerance // 1) if tolerance - tolerance == 0 else tolerance
