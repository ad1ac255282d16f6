"""Figures of a tensor's values that their order does not change, found without sorting them."""

import math
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from layerwise._tool.backends.arrays import Array

LANDMARKS = 8  # the largest and the smallest elements whose places are kept
_FEW = 4 * LANDMARKS
_PART = 4096  # BLAS starts threads for longer products
_ROWS = 32
_ROW = 512
_PLAIN = (1e-4, 1e4)  # largest magnitudes of values whose fourth powers a float32 holds
_dot_rows = getattr(np, "vecdot", partial(np.einsum, "ij,ij->i"))  # NumPy 1 has no vecdot


class Summary(NamedTuple):
    """Of finite values. scale: their RMS. mean: over it. marks: over the scale, the smallest, the mean cube over that
    of the next, the root of the mean fourth power, the largest. low, high: the eighth smallest and the eighth largest;
    infinite of less than 32.
    """

    scale: float
    mean: float
    marks: Array
    low: float
    high: float


def summary(values: Array, bound: float = math.inf) -> Summary | None:
    """Of float32 values in any order, at least one; None if one is not finite or reaches `bound`."""
    rows = values[: values.size // _ROW * _ROW].reshape(-1, _ROW)
    rest = values[rows.size :]
    lows, highs = np.append(rows.min(1), rest), np.append(rows.max(1), rest)
    smallest, largest = float(lows.min()), float(highs.max())
    if not (-bound < smallest and largest < bound):
        return None
    most = max(-smallest, largest)
    if not most:
        return Summary(0.0, 0.0, np.zeros(4), -math.inf, math.inf)
    unit = 1.0 if _PLAIN[0] <= most <= _PLAIN[1] else most
    mean, square, third, fourth = _powers(values if unit == 1.0 else values / np.float32(unit))
    rms, root = math.sqrt(square), math.sqrt(math.sqrt(fourth))
    scale = rms * unit
    marks = np.array([smallest / scale, third / root**3, root / rms, largest / scale])
    if values.size < _FEW:
        return Summary(scale, mean / rms, marks, -math.inf, math.inf)
    return Summary(scale, mean / rms, marks, _eighth(values, lows, smallest, 1), _eighth(values, highs, largest, -1))


def _powers(values: Array) -> tuple[float, float, float, float]:
    """The means of the values and of their second, third and fourth powers."""
    sums = np.zeros(4)
    for rows in _parts(values):
        squares = np.square(rows)
        factors = (rows, np.ones_like(rows[:1])), (rows, rows), (squares, rows), (squares, squares)
        sums += [_dot_rows(*np.broadcast_arrays(*pair)).sum(dtype=np.float64) for pair in factors]
    first, second, third, fourth = (float(each) / values.size for each in sums)
    return first, second, third, fourth


def _parts(values: Array) -> Iterator[Array]:
    """Rows of a block, as many as a core's cache holds; the rest at last."""
    whole = values.size // _PART * _PART
    for at in range(0, whole, _ROWS * _PART):
        yield values[at : min(at + _ROWS * _PART, whole)].reshape(-1, _PART)
    if whole < values.size:
        yield values[None, whole:]


def _eighth(values: Array, ends: Array, extreme: float, sign: int) -> float:
    """The eighth smallest value (sign 1) or the eighth largest (-1). ends: the smallest, or largest, of each row."""
    if np.count_nonzero(ends == extreme) >= LANDMARKS:
        return extreme
    place = LANDMARKS - 1 if sign > 0 else -LANDMARKS
    beyond = values
    if ends.size >= LANDMARKS:
        bound = np.partition(ends, place)[place]
        beyond = values[values <= bound] if sign > 0 else values[values >= bound]
    return float(np.partition(beyond, place)[place])
