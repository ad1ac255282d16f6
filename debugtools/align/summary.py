"""Figures of a tensor's values that their order does not change: sorted where they are few, in one pass where not."""

import math
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from layerwise._tool.backends.arrays import Array

MANY = 1 << 15  # elements: to sort more would be most of what aligning takes
QUANTILES = 65
MOMENTS = 4
LANDMARKS = 8  # the largest and the smallest elements whose places are kept
MOST_TIES = 16
_NOWHERE = np.empty(0, np.int64)
_PART = 4096  # BLAS starts threads for longer products
_ROWS = 32
_ROW = 512
_PLAIN = (1e-4, 1e4)  # largest magnitudes of values whose fourth powers a float32 holds
_dot_rows = getattr(np, "vecdot", partial(np.einsum, "ij,ij->i"))  # NumPy 1 has no vecdot


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
    """Of values in ascending order, at least one."""
    scale = math.sqrt(_power(ordered) / ordered.size)
    if not math.isfinite(scale) or scale < 1e-18:
        scale = math.sqrt(float(np.square(ordered, dtype=np.float64).mean()))
    low, high, share = _between(ordered.size)
    marks = ordered[low] + share * (ordered[high].astype(np.float64) - ordered[low])
    few = ordered.size < 4 * LANDMARKS
    return Summary(
        scale,
        float(ordered.mean(dtype=np.float64)) / (scale or 1.0),
        marks / (scale or 1.0),
        -math.inf if few else float(ordered[LANDMARKS - 1]),
        math.inf if few else float(ordered[-LANDMARKS]),
    )


def of_many(values: Array, bound: float = math.inf) -> Summary | None:
    """Of values in any order, at least one; None if one is not finite or reaches `bound`. Its marks are MOMENTS."""
    rows = values[: values.size // _ROW * _ROW].reshape(-1, _ROW)
    rest = values[rows.size :]
    lows, highs = np.append(rows.min(1), rest), np.append(rows.max(1), rest)
    smallest, largest = float(lows.min()), float(highs.max())
    if not (-bound < smallest and largest < bound):
        return None
    most = max(-smallest, largest)
    if not most:
        return Summary(0.0, 0.0, np.zeros(MOMENTS), -math.inf, math.inf)
    unit = 1.0 if _PLAIN[0] <= most <= _PLAIN[1] else most
    mean, square, third, fourth = _powers(values if unit == 1.0 else values / np.float32(unit))
    rms, root = math.sqrt(square), math.sqrt(math.sqrt(fourth))
    scale = rms * unit
    marks = np.array([smallest / scale, third / root**3, root / rms, largest / scale])
    if values.size < 4 * LANDMARKS:
        return Summary(scale, mean / rms, marks, -math.inf, math.inf)
    (low, lowest), (high, highest) = _eighth(values, lows, smallest, 1), _eighth(values, highs, largest, -1)
    return Summary(scale, mean / rms, marks, low, high, (lowest, highest))


def _power(values: Array) -> float:
    """The sum of squares."""
    return math.fsum(float(_dot_rows(rows, rows).sum(dtype=np.float64)) for rows in _parts(values))


def _powers(values: Array) -> tuple[float, float, float, float]:
    """The means of the values and of their second, third and fourth powers."""
    sums, ones = np.zeros(4), np.ones((1, _PART), values.dtype)
    for rows in _parts(values):
        squares = np.square(rows)
        factors = (rows, ones[:, : rows.shape[1]]), (rows, rows), (squares, rows), (squares, squares)
        sums += [float(_dot_rows(*pair).sum(dtype=np.float64)) for pair in factors]
    first, second, third, fourth = (float(each) / values.size for each in sums)
    return first, second, third, fourth


def _parts(values: Array) -> Iterator[Array]:
    """Rows of a block, as many as a core's cache holds; the rest at last."""
    whole = values.size // _PART * _PART
    for at in range(0, whole, _ROWS * _PART):
        yield values[at : min(at + _ROWS * _PART, whole)].reshape(-1, _PART)
    if whole < values.size:
        yield values[None, whole:]


def _eighth(values: Array, ends: Array, extreme: float, sign: int) -> tuple[float, Array]:
    """The eighth smallest value (sign 1) or the eighth largest (-1), and where such values are, if they are not too
    many. ends: the smallest, or largest, of each row.
    """
    rows = np.count_nonzero(ends == extreme)
    if rows > MOST_TIES:
        return extreme, _NOWHERE
    place, bound = (LANDMARKS - 1, math.inf) if sign > 0 else (-LANDMARKS, -math.inf)
    if rows >= LANDMARKS:
        bound = extreme
    elif ends.size >= LANDMARKS:
        bound = np.partition(ends, place)[place]
    hits = _elements(np.flatnonzero(ends <= bound if sign > 0 else ends >= bound), values.size)
    beyond = values[hits]
    eighth = np.partition(beyond, place)[place]
    found = hits[beyond <= eighth if sign > 0 else beyond >= eighth]
    return float(eighth), found if found.size <= MOST_TIES else _NOWHERE


def _elements(ends: Array, size: int) -> Array:
    """Where the elements of some rows are, and of the rest behind the rows, each of which is a row of its own."""
    whole = size // _ROW
    rows, rest = ends[ends < whole], ends[ends >= whole]
    inside: Array = (rows[:, None] * _ROW + np.arange(_ROW)).reshape(-1)
    return np.append(inside, rest - whole + whole * _ROW)


@lru_cache(maxsize=64)
def _between(size: int) -> tuple[Array, Array, Array]:
    """Where the quantiles lie: between which places, and how far on the way."""
    at = np.linspace(0, size - 1, QUANTILES)
    low = at.astype(np.int64)
    return low, np.minimum(low + 1, size - 1), at - low
