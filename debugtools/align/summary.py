"""Figures of a tensor's values that their order does not change: sorted where they are few, in one pass where not."""

import math
from collections.abc import Callable, Iterable, Iterator
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
_PART = 1 << 17  # elements: they and their squares stay in a core's cache
CLASSES = 16  # rows are summed in so many classes: every sixteenth row is in one
_ROWS = 32  # a block is of so many or a multiple; a multiple of CLASSES
_LONGEST = 11  # bits of a row's length: BLAS starts threads for products longer than 13
_PIECE = 1 << 11  # elements: of shorter pieces finding the extremes takes longer than reading them
_PIECES = 16
_PLAIN = (1e-4, 1e4)  # largest magnitudes of values whose fourth powers a float32 holds
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


def of_many(
    values: Array, bound: float = math.inf, look: Callable[[Array], None] = lambda rows: None
) -> Summary | None:
    """Of floats of any type in any order, at least one; None if one is not finite or reaches `bound`. Its marks are
    MOMENTS. look: is shown them as `in_rows` gives them, while a core's cache holds them.
    """
    (lows, highs), sums = _figures(in_rows(values), values.size, look)
    smallest, largest = float(lows.min()), float(highs.max())
    if not (-bound < smallest and largest < bound):
        return None
    most = max(-smallest, largest)
    if not most:
        return Summary(0.0, 0.0, np.zeros(MOMENTS), -math.inf, math.inf)
    unit = 1.0 if _PLAIN[0] <= most <= _PLAIN[1] else most
    if unit != 1.0:
        _, sums = _figures((rows / np.float32(unit) for rows in in_rows(values)), values.size)
    mean, square, third, fourth = (sums.sum(1, dtype=np.float64) / values.size).tolist()
    rms, root = math.sqrt(square), math.sqrt(math.sqrt(fourth))
    scale = rms * unit
    marks = np.array([smallest / scale, third / root**3, root / rms, largest / scale])
    if values.size < 4 * LANDMARKS:
        return Summary(scale, mean / rms, marks, -math.inf, math.inf)
    low, lowest = _eighth(values, lows, smallest, 1)
    high, highest = _eighth(values, highs, largest, -1)
    return Summary(scale, mean / rms, marks, low, high, (lowest, highest))


@lru_cache(maxsize=4096)
def row_length(size: int) -> int:
    """How many elements of a tensor are looked at as a row: about as many as there are rows, and at most 2048. Such
    that all classes have equally many rows, or that no shorter row is left over, if that can be.
    """
    most = 1 << min((size.bit_length() + 3) // 2, _LONGEST)
    lengths = range(most, most // 2, -1)
    return next((length for each in (CLASSES, 1) for length in lengths if size % (each * length) == 0), most)


@lru_cache(maxsize=4096)
def _piece_length(size: int) -> int:
    """How many elements of a tensor are looked through as one piece for the extremes: some rows of a block."""
    row, most = row_length(size), min(_PIECE, size // _PIECES)
    return row * min(1 << max((most // row).bit_length() - 1, 0), _ROWS)


def in_rows(values: Array) -> Iterator[Array]:
    """Floats of any type as float32 in rows, a multiple of CLASSES at a time as long as there are so many; what is left
    over of the last one comes alone. Each block is valid until the next one.
    """
    row = row_length(values.size)
    count = values.size // row
    whole, step = values[: count * row].reshape(-1, row), _PART // row // _ROWS * _ROWS
    ready = values.dtype == np.float32 and values.flags.aligned
    held = None if ready else np.empty((min(step, max(count, 1)), row), np.float32)
    for at in range(0, count, step):
        yield _held(whole[at : at + step], held)
    if count * row < values.size:
        yield _held(values[None, count * row :], held)


def _held(rows: Array, held: Array | None) -> Array:
    if held is None:
        return rows
    part = held[: len(rows), : rows.shape[1]]
    np.copyto(part, rows, casting="unsafe")
    return part


def _figures(
    blocks: Iterable[Array], size: int, look: Callable[[Array], None] = lambda rows: None
) -> tuple[tuple[Array, Array], Array]:
    """The least and the largest value of each piece, and the sums of the first four powers of each row."""
    piece, at, seen = _piece_length(size), 0, 0
    lows, highs = np.full(-(-size // piece), np.inf, np.float32), np.full(-(-size // piece), -np.inf, np.float32)
    sums = np.empty((4, -(-size // row_length(size))), np.float32)
    for rows in blocks:
        here = slice(at, at + len(rows))
        look(rows)
        flat, starts, first = rows.reshape(-1), np.arange(0, rows.size, piece), seen // piece
        for ends, extreme in ((lows, np.minimum), (highs, np.maximum)):
            some = ends[first : first + len(starts)]  # of which the last block may end one that has begun
            extreme(some, extreme.reduceat(flat, starts), out=some)
        at, seen = here.stop, seen + rows.size
        squares, (first, second, third, fourth) = np.square(rows), sums[:, here]
        dot_rows(rows, _ones(rows.shape[1]), out=first)
        dot_rows(rows, rows, out=second)
        dot_rows(squares, rows, out=third)
        dot_rows(squares, squares, out=fourth)
    return (lows, highs), sums


@lru_cache(maxsize=4096)
def _ones(count: int) -> Array:
    return np.ones((1, count), np.float32)


def _eighth(values: Array, ends: Array, extreme: float, sign: int) -> tuple[float, Array]:
    """The eighth smallest value (sign 1) or the eighth largest (-1), and where such values are, if they are not too
    many. ends: the smallest, or largest, of each piece; extreme: of all.
    """
    reaches, place = (np.less_equal, LANDMARKS - 1) if sign > 0 else (np.greater_equal, -LANDMARKS)
    bound = np.partition(ends, place)[place] if ends.size >= LANDMARKS else np.float32(sign * math.inf)
    pieces = reaches(ends, bound).nonzero()[0]
    if pieces.size > MOST_TIES:
        if bound == extreme:
            return extreme, _NOWHERE
        beyond = ends[pieces] != bound  # less than eight; of those that just reach it one more than MOST_TIES tells all
        pieces = np.sort(np.append(pieces[beyond], pieces[~beyond][: MOST_TIES + 1]))
    found, length = _elements(values, pieces), _piece_length(values.size)
    reached = reaches(found, bound)
    if bound == extreme and np.count_nonzero(reached) > MOST_TIES:
        return extreme, _NOWHERE
    hits = reached.nonzero()[0]
    if hits.size > LANDMARKS:
        beyond = found[hits]
        bound = np.partition(beyond, place)[place]
        hits = hits[reaches(beyond, bound)]
    return float(bound), pieces[hits // length] * length + hits % length if hits.size <= MOST_TIES else _NOWHERE


def _elements(values: Array, pieces: Array) -> Array:
    """The elements of some pieces, as float32."""
    length = _piece_length(values.size)
    whole = values[: values.size // length * length].reshape(-1, length)
    if pieces[-1] < len(whole):
        return whole[pieces].astype(np.float32, copy=False).reshape(-1)
    return np.append(whole[pieces[:-1]], values[whole.size :]).astype(np.float32, copy=False)


@lru_cache(maxsize=64)
def _between(size: int) -> tuple[Array, Array, Array]:
    """Where the quantiles lie: between which places, and how far on the way."""
    at = np.linspace(0, size - 1, QUANTILES)
    low = at.astype(np.int64)
    return low, np.minimum(low + 1, size - 1), at - low
