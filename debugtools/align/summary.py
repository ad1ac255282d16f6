"""Figures of a tensor's values that their order does not change: sorted where they are few, in one pass where not."""

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from layerwise._tool.backends.arrays import Array

MANY = 1 << 12  # elements: to sort more would be most of what aligning takes
QUANTILES = 65
MOMENTS = 4
LANDMARKS = 8  # the largest and the smallest elements whose places are kept
MOST_TIES = 16
_NOWHERE = np.empty(0, np.int64)
_PART = 4096  # BLAS starts threads for longer products
_ROWS = 32
_PLAIN = (1e-4, 1e4)  # largest magnitudes of values whose fourth powers a float32 holds
_ENDS = (np.minimum, np.maximum)
dot_rows = getattr(np, "vecdot", partial(np.einsum, "ij,ij->i"))  # NumPy 1 has no vecdot
"""Inner products of the rows of two arrays."""


class Summary(NamedTuple):
    """Of finite values. scale: their RMS. mean: over it. marks: over the scale, the smallest first and the largest
    last: quantiles, or, of many, with the third moment and the root of the fourth between them. low, high: the eighth
    smallest and the eighth largest; infinite if they are less than 32. places: of many, where those are that are as
    small, and as large; empty if they are more than MOST_TIES.
    """

    scale: float
    mean: float
    marks: Array
    low: float
    high: float
    places: tuple[Array, Array] | None = None


def of_sorted(ordered: Array) -> Summary:
    """Of values in ascending order, one at least and MANY at most."""
    scale = math.sqrt(float(np.dot(ordered, ordered)) / ordered.size)
    if not math.isfinite(scale) or scale < 1e-18:
        scale = math.sqrt(float(np.square(ordered, dtype=np.float64).mean()))
    low, high, share = _between(ordered.size)
    below = ordered[low]
    marks = below + share * np.subtract(ordered[high], below, dtype=np.float64)
    few = ordered.size < 4 * LANDMARKS
    return Summary(
        scale,
        float(np.add.reduce(ordered, dtype=np.float64)) / ordered.size / (scale or 1.0),
        marks / (scale or 1.0),
        -math.inf if few else float(ordered[LANDMARKS - 1]),
        math.inf if few else float(ordered[-LANDMARKS]),
    )


def of_many(values: Array, bound: float = math.inf) -> Summary | None:
    """Of values in any order, at least one; None if one is not finite or reaches `bound`. Its marks are MOMENTS."""
    width = _width(values.size)
    columns = values[: values.size // width * width].reshape(-1, width)
    rest = values[columns.size :]
    lows, highs = (np.concatenate([ends.reduce(columns), rest]) if len(columns) else rest for ends in _ENDS)
    smallest, largest = float(lows.min()), float(highs.max())
    if not (-bound < smallest and largest < bound):
        return None
    most = max(-smallest, largest)
    if not most:
        return Summary(0.0, 0.0, np.zeros(MOMENTS), -math.inf, math.inf)
    unit = 1.0 if _PLAIN[0] <= most <= _PLAIN[1] else most
    mean, square, third, fourth = map(float, _powers(values if unit == 1.0 else values / np.float32(unit)))
    rms, root = math.sqrt(square), math.sqrt(math.sqrt(fourth))
    scale = rms * unit
    marks = np.array([smallest / scale, third / root**3, root / rms, largest / scale])
    if values.size < 4 * LANDMARKS:
        return Summary(scale, mean / rms, marks, -math.inf, math.inf)
    (low, lowest), (high, highest) = _eighth(values, lows, smallest, 1), _eighth(values, highs, largest, -1)
    return Summary(scale, mean / rms, marks, low, high, (lowest, highest))


def _powers(values: Array) -> Array:
    """The means of the values and of their second, third and fourth powers."""
    sums, start = np.empty((4, -(-values.size // _PART)), values.dtype), 0
    for rows in _parts(values):
        squares = np.square(rows)
        factors = (rows, _ones(rows.shape[1])), (rows, rows), (squares, rows), (squares, squares)
        for total, pair in zip(sums, factors, strict=True):
            dot_rows(*pair, out=total[start : start + len(rows)])
        start += len(rows)
    found: Array = sums.sum(1, dtype=np.float64) / values.size
    return found


def _parts(values: Array) -> Iterator[Array]:
    """Rows of a block, as many as a core's cache holds; the rest at last."""
    whole = values.size // _PART * _PART
    for at in range(0, whole, _ROWS * _PART):
        yield values[at : min(at + _ROWS * _PART, whole)].reshape(-1, _PART)
    if whole < values.size:
        yield values[None, whole:]


@lru_cache(maxsize=16)
def _ones(count: int) -> Array:
    return np.ones((1, count), np.float32)


def _eighth(values: Array, ends: Array, extreme: float, sign: int) -> tuple[float, Array]:
    """The eighth smallest value (sign 1) or the eighth largest (-1), and where such values are, if they are not too
    many. ends: the smallest, or largest, of each column.
    """
    columns = np.count_nonzero(ends == extreme)
    if columns > MOST_TIES:
        return extreme, _NOWHERE
    place, bound = (LANDMARKS - 1, math.inf) if sign > 0 else (-LANDMARKS, -math.inf)
    if columns >= LANDMARKS:
        bound = extreme
    elif ends.size >= LANDMARKS:
        bound = np.partition(ends, place)[place]
    hits = _elements(np.flatnonzero(ends <= bound if sign > 0 else ends >= bound), values.size)
    beyond = values[hits]
    eighth = np.partition(beyond, place)[place]
    found = hits[beyond <= eighth if sign > 0 else beyond >= eighth]
    return float(eighth), found if found.size <= MOST_TIES else _NOWHERE


def _elements(ends: Array, size: int) -> Array:
    """Where the elements of some columns are, and of the rest behind them, each of which is a column of its own."""
    width = _width(size)
    rows = size // width
    apart = np.searchsorted(ends, width if rows else 0)
    inside: Array = (np.arange(rows)[:, None] * width + ends[:apart]).reshape(-1)
    return np.append(inside, ends[apart:] + (rows - 1) * width if rows else ends)


def _width(size: int) -> int:
    """How many columns a tensor is looked at in: several times as many as rows."""
    return 1 << (size.bit_length() // 2 + 2)


@lru_cache(maxsize=64)
def _between(size: int) -> tuple[Array, Array, Array]:
    """Where the quantiles lie: between which places, and how far on the way."""
    at = np.linspace(0, size - 1, QUANTILES)
    low = at.astype(np.int64)
    return low, np.minimum(low + 1, size - 1), at - low
