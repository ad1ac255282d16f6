"""A fingerprint of one tensor: what survives renaming, reshaping, transposing and rounding, and a sketch of its order.

Elements that an attention mask hides (infinite, 1e30 and beyond, or far beyond all others) are counted and left out.
"""

import hashlib
import math
from functools import lru_cache
from typing import Any, Literal

import msgspec
import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name, is_floating, is_integral
from layerwise._tool.debugtools.align.summary import (
    CLASSES,
    MANY,
    MOST_TIES,
    Summary,
    dot_rows,
    in_rows,
    of_many,
    of_sorted,
    row_length,
)

Kind = Literal["float", "int", "bool", "other"]
SKETCH = 32
NO_SCALE = -100.0  # log RMS of a tensor of zeros
_HUGE, _LEAST, _GAP = 1e30, 9e3, 256.0
_ROUNDS, _BUCKETS, _BLOCK = 8, 4, 2048
_SOME = 256  # elements: BLAS starts threads for larger products, which cost more than they give here


class Fingerprint(msgspec.Struct, frozen=True, omit_defaults=True, cache_hash=True):
    """Of one tensor; about 1 KB.

    kind: what may be compared; dtype, shape: as found. hidden: elements that are not finite or stand for "nothing
    here". log_rms: natural logarithm of the others' RMS (NO_SCALE: all zero). mean: over RMS.
    marks: of the values over RMS, of float32, whatever the layout: 65 quantiles, or what `summary` tells of many.
    sketch: 32 random projections over RMS and the root of the size, of float32: the distance of two sketches estimates
    the relative L2 distance of two tensors in equal flat order. places: flat positions (int64) of the 8 largest and of
    the 8 smallest elements, of up to 16 where some are equal; -1 stands for none. Of what is no float: digests of the
    sorted values and of the values in order.
    """

    kind: Kind
    dtype: str
    shape: tuple[int, ...]
    hidden: int = 0
    log_rms: float = NO_SCALE
    mean: float = 0.0
    marks: bytes = b""
    sketch: bytes = b""
    places: bytes = b""
    values: bytes = b""
    order: bytes = b""

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest visible value; 0 where none is known."""
        if not self.marks:
            return 0.0, 0.0
        marks, scale = np.frombuffer(self.marks, "<f4"), math.exp(self.log_rms)
        return float(marks[0]) * scale, float(marks[-1]) * scale

    @property
    def constant(self) -> bool:
        """Whether it tells little: at most 4 elements, all of one value, or none that is to be seen."""
        if self.size <= 4:
            return True
        if self.kind != "float":
            return False
        if not self.marks:
            return True
        marks = np.frombuffer(self.marks, "<f4")
        return bool(marks[0] == marks[-1])


_VALUES = ("kind", "values", "order", "log_rms", "marks", "sketch", "hidden")


def same_values(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two tensors hold the same values in the same flat order, whatever their shapes and float types."""
    return one.size == other.size and all(getattr(one, key) == getattr(other, key) for key in _VALUES)


def fingerprint(array: Array) -> Fingerprint:
    """Return a tensor's fingerprint. Memory: two copies as float32, where that is to be sorted or is another type."""
    name = dtype_name(array)
    shape = tuple(int(d) for d in array.shape)
    if is_floating(name):
        return _of_floats(np.ascontiguousarray(array).reshape(-1), name, shape)
    if name == "bool" or is_integral(name):
        flat = _narrow(np.ascontiguousarray(array).reshape(-1))
        kind: Kind = "bool" if name == "bool" else "int"
        return Fingerprint(kind, name, shape, values=_digest(np.sort(flat)), order=_digest(flat))
    text = repr(array.tolist()).encode("utf-8", "surrogatepass")
    return Fingerprint("other", name, shape, values=_digest(text), order=_digest(text))


def _narrow(flat: Array) -> Array:
    """Whole numbers in the narrowest signed type that holds them all."""
    if flat.dtype.itemsize == 1:
        flat = flat.astype(np.int16)
    low, high = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
    fits = (kind for kind in (np.int8, np.int16, np.int32) if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return flat.astype(next(fits, np.int64))


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _packed(values: Array) -> bytes:
    return values.astype("<f4").tobytes()


def _of_floats(flat: Array, name: str, shape: tuple[int, ...]) -> Fingerprint:
    with np.errstate(all="ignore"):
        sums = _Sums(flat.size) if flat.size > MANY else None
        found = of_many(flat, _LEAST, sums.add) if sums else None
        values, visible = flat, flat.size
        if found is None:
            values = flat.astype(np.float32, copy=False)
            ordered, bound = _visible(values)
            visible = ordered.size
            if not visible:
                return Fingerprint("float", name, shape, values.size)
            if visible < values.size:
                values = np.where(np.abs(values) < bound, values, np.float32(0))
            found = of_many(ordered) if values.size > MANY else of_sorted(ordered)
            assert found is not None
            found = found._replace(places=None)  # these are places in order
            sums = None
    hidden, marks = values.size - visible, _packed(found.marks)
    if not found.scale:
        return Fingerprint("float", name, shape, hidden, NO_SCALE, 0.0, marks, bytes(4 * SKETCH))
    sketch, places = _sketch(values, sums, found.scale), _places(values, found)
    return Fingerprint("float", name, shape, hidden, math.log(found.scale), found.mean, marks, sketch, places)


def _visible(values: Array) -> tuple[Array, float]:
    """The values in order without those that are hidden, and the magnitude that these reach."""
    ordered = np.sort(values)  # NaN last
    if ordered.size and ordered[0] > -_LEAST and ordered[-1] < _LEAST:
        return ordered, _HUGE
    ordered = ordered[np.searchsorted(ordered, -_HUGE, "right") : np.searchsorted(ordered, _HUGE, "left")]
    if not ordered.size or max(-ordered[0], ordered[-1]) < _LEAST:
        return ordered, _HUGE
    sizes = np.sort(np.abs(ordered))
    steps = np.flatnonzero((sizes[1:] >= _LEAST) & (sizes[1:] > _GAP * sizes[:-1]))
    if not steps.size:
        return ordered, _HUGE
    bound = float(sizes[steps[0] + 1])
    return ordered[np.abs(ordered) < bound], bound


def _sketch(values: Array, sums: "_Sums | None", scale: float) -> bytes:
    """Products with random signs, in four groups of elements for each of eight patterns of signs. sums: if known."""
    found = _products_of_few(values) if values.size <= _BLOCK else _products((sums or _Sums.of(values)).found)
    return _packed(found / (scale * math.sqrt(values.size * _ROUNDS)))


def _products_of_few(values: Array) -> Array:
    """Of at most a block of elements, some at a time."""
    signs = _signs_of_few()
    if values.size <= _SOME:
        return values @ signs[0, : values.size]
    rows = -(-values.size // _SOME)
    padded = np.zeros((rows, 1, _SOME), np.float32)
    padded.reshape(-1)[: values.size] = values
    found: Array = np.matmul(padded, signs[:rows]).sum(0)[0]
    return found


def _products(sums: Array) -> Array:
    """Of rows, summed in classes; a group is a quarter of a row."""
    patterns, mixed = _patterns_of(*sums.shape)
    found: Array = dot_rows((mixed @ sums).reshape(SKETCH, -1), patterns)
    return found


class _Sums:
    """The rows of a tensor, each with its sign, summed in classes."""

    def __init__(self, size: int) -> None:
        row = row_length(size)
        rows = -(-size // row)
        self.found = np.zeros((min(rows, CLASSES), -(-row // _BUCKETS) * _BUCKETS), np.float32)
        self._signs, self._rows = _signs(rows), 0

    @classmethod
    def of(cls, values: Array) -> "_Sums":
        """Of a whole tensor."""
        sums = cls(values.size)
        for rows in in_rows(values):
            sums.add(rows)
        return sums

    def add(self, rows: Array) -> None:
        """Add the next block of `in_rows`."""
        count, length = rows.shape
        signs = self._signs[self._rows : self._rows + count]
        even = count // CLASSES * CLASSES
        if even:
            classes = rows[:even].reshape(-1, CLASSES, length).transpose(1, 0, 2)
            self.found[:, :length] += np.matmul(signs[:even].reshape(-1, 1, CLASSES).T, classes)[:, 0]
        if even < count:
            first = (self._rows + even) % CLASSES
            self.found[first : first + count - even, :length] += signs[even:] * rows[even:]
        self._rows += count


def _signs(rows: int) -> Array:
    """A sign for each row, as a column."""
    return _drawn(rows.bit_length())[:rows]


@lru_cache(maxsize=32)
def _drawn(bits: int) -> Array:
    """Signs for less rows than 1 << bits."""
    drawn = np.random.Generator(np.random.PCG64(20259)).integers(0, 2, (1 << bits, 1), dtype=np.int8)
    return drawn.astype(np.float32) * 2 - 1


@lru_cache(maxsize=1)
def _patterns() -> tuple[Array, Array]:
    """Signs of the elements of a block, and of the classes of rows, in each of eight patterns."""
    draw = np.random.Generator(np.random.PCG64(7))
    signs = [draw.integers(0, 2, (_ROUNDS, count), dtype=np.int8) for count in (_BLOCK, CLASSES)]
    return signs[0] * np.float32(2) - 1, signs[1] * np.float32(2) - 1


@lru_cache(maxsize=64)
def _patterns_of(classes: int, length: int) -> tuple[Array, Array]:
    """The same for rows of a length in some classes; those of elements as one row for each product."""
    patterns, mixed = _patterns()
    return patterns[:, :length].reshape(SKETCH, -1), np.ascontiguousarray(mixed[:, :classes])


@lru_cache(maxsize=1)
def _signs_of_few() -> Array:
    """Signs of the elements of a block in each product, _SOME at a time; 0 where an element is in another group."""
    signs = np.zeros((_BLOCK, _ROUNDS, _BUCKETS), np.float32)
    places = np.arange(_BLOCK)
    signs[places, :, places % _BUCKETS] = _patterns()[0].T
    return signs.reshape(-1, _SOME, SKETCH)


def _places(values: Array, found: Summary) -> bytes:
    """Where values are at least as large, and at most as small, as eight are; none if there are few values."""
    if math.isinf(found.low):
        return b""
    if found.places is not None:
        lowest, highest = found.places
    else:
        lowest, highest = np.flatnonzero(values <= found.low), np.flatnonzero(values >= found.high)
    places = np.full(2 * MOST_TIES, -1, "<i8")
    for start, hits in ((0, highest), (MOST_TIES, lowest)):
        if hits.size <= MOST_TIES:
            places[start : start + hits.size] = hits
    return places.tobytes()
