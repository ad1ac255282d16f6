"""The arithmetic of one chunk of a pair of floating tensors."""

import ctypes
import threading
from functools import partial
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.kinds import Arithmetic
from layerwise._tool.debugtools.compare.arithmetic.totals import Moments, SideStatistics, Totals, bound_alike

CHUNK = 65536
_DOT = 8192  # BLAS starts threads for longer ones, which on a busy machine cost more than they give
EPSILON = 2.220446049250313e-16
_ZERO = np.zeros(1)
_local = threading.local()
_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_dot_rows = getattr(np, "vecdot", partial(np.einsum, "ij,ij->i"))  # NumPy 1 has no vecdot


class _Scratch:
    """Buffers of one thread, made once."""

    def __init__(self) -> None:
        self.mask = np.empty(CHUNK, np.bool_)
        self.mask2 = np.empty(CHUNK, np.bool_)
        self.doubles = [np.empty(CHUNK) for _ in range(4)]
        self.work: dict[tuple[Any, int], Array] = {}

    def buffer(self, dtype: Any, index: int) -> Array:
        key = (dtype, index)
        if key not in self.work:
            self.work[key] = np.empty(CHUNK, dtype)
        return self.work[key]


def address(values: Array) -> int:
    """Where the first element of an array is in memory."""
    found: int = values.__array_interface__["data"][0]
    return found


def same_bytes(x: int, y: int, nbytes: int) -> bool:
    """Whether as many bytes at two addresses agree."""
    return bool(_memcmp(x, y, nbytes) == 0)


def _scratch() -> _Scratch:
    if not hasattr(_local, "scratch"):
        _local.scratch = _Scratch()
    scratch: _Scratch = _local.scratch
    return scratch


def dot(x: Array, y: Array) -> float:
    """The dot product of two float64 vectors, on this thread."""
    whole = x.size - x.size % _DOT
    total = float(x[whole:].dot(y[whole:])) if whole < x.size else 0.0
    if whole:
        total += float(_dot_rows(x[:whole].reshape(-1, _DOT), y[:whole].reshape(-1, _DOT)).sum())
    return total


def add_up(x: Array) -> float:
    """The sum of a float64 vector; np.sum asks more questions of short ones."""
    return float(np.add.reduce(x))


class FloatKernel:
    """Floating pairs, and floating against integer."""

    _divides = True  # zeros by zeros too, where nothing stands in for them

    def __init__(self, how: Arithmetic, atol: float, rtol: float, infinities_equal: bool) -> None:
        self.how, self.infinities_equal = how, infinities_equal
        work = None if infinities_equal else how.work
        self.atol, self.rtol = round_down(atol, work), round_down(rtol, work)
        self.totals = Totals(SideStatistics(), SideStatistics(), Moments(), Moments())
        self.scratch = _scratch()

    def take(self, x: Array, y: Array, at: int, same: bool) -> None:
        """Take in one chunk of both sides; same: it is known that all their bits agree."""
        if not (same and self._take_equal(x, at)):
            self._take_different(x, y, at)

    def squares(self, x: Array) -> float:
        """The sum of squared magnitudes of one chunk, in float64."""
        double = self._double(self._lift(x, 0), 0)
        return dot(double, double)

    def _take_equal(self, x: Array, at: int) -> bool:
        totals, n = self.totals, x.size
        value = self._lift(x, 0)
        double = self._double(value, 0)
        total = add_up(double)
        low, high = value.min().item(), value.max().item()
        if total - total != 0.0 or not self._equal_errors(value, low, high, at):
            return False
        squares = dot(double, double)
        magnitude = self._magnitude(double, total, low, high)
        bound_alike((totals.a.moments, totals.b.moments), low, high, value, at)
        for side in (totals.a, totals.b):
            side.moments.add(total, squares, n)
            side.magnitude += magnitude
        return True

    def _equal_errors(self, value: Array, low: float, high: float, at: int) -> bool:
        """Take in that all errors are 0; False if the division says otherwise."""
        if self._divides and not self.how.epsilon and low <= 0 <= high:
            return False
        for moments in (self.totals.abs, self.totals.rel):
            if not moments.count or moments.low > 0:
                moments.bound(0.0, 0.0, _ZERO, at)
            moments.add(0.0, 0.0, value.size)
        return True

    def _take_different(self, x: Array, y: Array, at: int) -> None:
        totals, n = self.totals, x.size
        left, right = self._lift(x, 0), self._lift(y, 1)
        left64, right64 = self._double(left, 0), self._double(right, 1)
        self._side(totals.a, left, left64, at)
        low, high = self._side(totals.b, right, right64, at)
        error = np.abs(np.subtract(left, right, out=self._buffer(2, n)), out=self._buffer(2, n))
        error64 = np.subtract(left64, right64, out=self.scratch.doubles[2][:n])
        magnitude = self._denominator(right, low, high)
        if self.infinities_equal:  # Polygraphy goes on in float64 then, and so in its last bits
            self._forgive_infinities(left, right, error, error64)
            error, magnitude = error.astype(np.float64), magnitude.astype(np.float64)
        totals.product += dot(error64, right64)
        np.abs(error64, out=error64)
        self._errors(error, error64, self._ratio(error, magnitude), at)

    def _ratio(self, error: Array, magnitude: Array) -> Array:
        return np.divide(error, magnitude, out=magnitude)

    def _errors(self, error: Array, error64: Array, ratio: Array, at: int) -> None:
        totals, n = self.totals, error.size
        worst = totals.abs.bounds(error, at)[1]
        worst_ratio = totals.rel.bounds(ratio, at)[1]
        squares = dot(error64, error64)
        totals.difference += squares
        totals.abs.add(add_up(error64), squares, n)
        ratio64 = self._double(ratio, 3)
        totals.rel.add(add_up(ratio64), dot(ratio64, ratio64), n)
        if not worst <= self.atol and not worst_ratio <= self.rtol:
            totals.over += self._count_over(error, ratio)

    def _count_over(self, error: Array, ratio: Array) -> int:
        n = error.size
        within = np.less_equal(error, self.atol, out=self.scratch.mask[:n])
        within |= np.less_equal(ratio, self.rtol, out=self.scratch.mask2[:n])
        return n - int(np.count_nonzero(within))

    def _denominator(self, right: Array, low: float, high: float) -> Array:
        n = right.size
        magnitude = np.abs(right, out=self._buffer(3, n))
        if self.how.epsilon and not low > 0 and not high < 0:
            zeros = np.equal(right, 0, out=self.scratch.mask[:n])
            if zeros.any():
                np.copyto(magnitude, EPSILON, where=zeros)
        return magnitude

    def _forgive_infinities(self, left: Array, right: Array, error: Array, error64: Array) -> None:
        n = left.size
        same = np.isinf(left, out=self.scratch.mask[:n])
        same &= np.equal(left, right, out=self.scratch.mask2[:n])
        np.copyto(error, 0, where=same)
        np.copyto(error64, 0, where=same)

    def _side(self, side: SideStatistics, values: Array, double: Array, at: int) -> tuple[float, float]:
        n = values.size
        total = add_up(double)
        low, high = side.moments.bounds(values, at)
        side.moments.add(total, dot(double, double), n)
        side.magnitude += self._magnitude(double, total, low, high)
        if total - total != 0.0:
            side.count_bad(values, at)
        return low, high

    def _magnitude(self, double: Array, total: float, low: float, high: float) -> float:
        if low >= 0:
            return total
        if high <= 0:
            return -total
        n = double.size
        return add_up(np.abs(double, out=self.scratch.doubles[3][:n]))

    def _lift(self, values: Array, index: int) -> Array:
        if values.dtype == self.how.work:
            return values
        lifted = self._buffer(index, values.size)
        np.copyto(lifted, values, casting="unsafe")
        return lifted

    def _double(self, values: Array, index: int) -> Array:
        if values.dtype == np.float64:
            return values
        double = self.scratch.doubles[index][: values.size]
        np.copyto(double, values)
        return double

    def _buffer(self, index: int, n: int) -> Array:
        return self.scratch.buffer(self.how.work, index)[:n]


def round_down(tolerance: float, work: Any) -> float:
    """The largest value of the working type that is at most `tolerance`: comparing with it is exact and fast."""
    if work is None or work.kind != "f" or tolerance != tolerance:
        return tolerance
    rounded = work.type(tolerance)
    return float(rounded if float(rounded) <= tolerance else np.nextafter(rounded, work.type(-np.inf)))
