"""One pass over a pair of tensors, in chunks that stay in the cache, that gives the sums all metrics follow from.

No temporary is larger than a chunk. Errors of floats are computed in the dtype that Polygraphy uses, so maxima agree to
the last bit; sums are in float64; integers of all widths, and bool, are exact. Chunks whose bits agree on both sides
cost about a third.
"""

from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.kernel import CHUNK, FloatKernel, address, dot, same_bytes
from layerwise._tool.debugtools.compare.arithmetic.kinds import Arithmetic
from layerwise._tool.debugtools.compare.arithmetic.totals import SideStatistics, Totals

_MOST = np.uint64(2**64 - 1)


class IntKernel(FloatKernel):
    """Integers of up to 32 bits, and bool: int64 holds every difference exactly."""

    _divides = False

    def __init__(self, how: Arithmetic, atol: float, rtol: float, infinities_equal: bool) -> None:
        super().__init__(Arithmetic(how.kind, np.dtype(np.int64)), atol, rtol, False)

    def _ratio(self, error: Array, magnitude: Array) -> Array:
        """Equal zeros are 0 apart."""
        ratio = np.divide(error, magnitude, out=self.scratch.doubles[3][: error.size])
        np.copyto(ratio, 0, where=np.equal(error, 0, out=self.scratch.mask2[: error.size]))
        return ratio

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
        self._errors(error, np.abs(error64, out=error64), self._ratio(error, wide_magnitude(y)), at)

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


def fuse(a: Array, b: Array, how: Arithmetic, atol: float, rtol: float, *, infinities_equal: bool = False) -> Totals:
    """Return the totals of two arrays of one shape (any layout; numbers or bool of the kinds in `kinds`).

    An element is `over` when neither its absolute error is at most `atol` nor its relative error, against `b`, is at
    most `rtol`; NaN errors are over.
    """
    bytewise = a is not b and a.flags.c_contiguous and b.flags.c_contiguous and a.dtype == b.dtype
    first = flat(a)
    second = first if a is b else flat(b)
    places = (address(first), address(second)) if bytewise else (0, 0)
    with np.errstate(all="ignore"):
        kernel: FloatKernel = _KERNELS[how.kind](how, atol, rtol, infinities_equal)
        for at in range(0, a.size, CHUNK):
            chunk = first[at : at + CHUNK]
            if second is first:
                kernel.take(chunk, chunk, at, True)
                continue
            offset = at * chunk.itemsize
            same = bytewise and same_bytes(places[0] + offset, places[1] + offset, chunk.nbytes)
            kernel.take(chunk, second[at : at + CHUNK], at, same)
    return kernel.totals


def measure(a: Array, how: Arithmetic) -> SideStatistics:
    """Return the statistics of one array alone."""
    return fuse(a, a, how, 0.0, 0.0).a


def sum_of_squares(a: Array, how: Arithmetic) -> float:
    """Return the sum of squared magnitudes of one array, in float64."""
    values = flat(a)
    with np.errstate(all="ignore"):
        kernel: FloatKernel = _KERNELS[how.kind](how, 0.0, 0.0, False)
        return sum(kernel.squares(values[at : at + CHUNK]) for at in range(0, a.size, CHUNK))


def flat(a: Array) -> Any:
    """The elements in order, to be sliced: a view where the layout allows."""
    return a.reshape(-1) if a.flags.c_contiguous else a.flat


class _ComplexKernel(FloatKernel):
    """Complex pairs: errors are magnitudes of differences, statistics those of the magnitudes."""

    def __init__(self, how: Arithmetic, atol: float, rtol: float, infinities_equal: bool) -> None:
        super().__init__(Arithmetic("float", np.dtype(np.float64), how.epsilon), atol, rtol, infinities_equal)

    def squares(self, x: Array) -> float:
        magnitude = np.abs(x.astype(np.complex128))
        return dot(magnitude, magnitude)

    def take(self, x: Array, y: Array, at: int, same: bool) -> None:
        totals = self.totals
        left, right = np.abs(x.astype(np.complex128)), np.abs(y.astype(np.complex128))
        error = np.abs(x.astype(np.complex128) - y)
        self._side(totals.a, left, left, at)
        low, high = self._side(totals.b, right, right, at)
        totals.product += float(np.vdot(y, x - y).real)
        ratio = np.divide(error, self._denominator(right, low, high))
        self._errors(error, error.copy(), ratio, at)


_KERNELS: dict[str, Any] = {"float": FloatKernel, "int": IntKernel, "wide": WideKernel, "complex": _ComplexKernel}
