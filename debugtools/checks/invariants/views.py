"""Tensors as rows: which parts of a tensor belong to which row of the batch, and whether rows are the same."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array

Pairs = Sequence[tuple[int, int]]
"""Rows of a first tensor, and rows of a second that must be the same."""
_MUCH = 100.0
LARGE = 1 << 20
"""Elements; beyond, rows are looked for as blocks and as single elements alone."""
_SMALL = 1e-3  # of the mean size of rows: below, a row's own size is no measure of its error


class View(Struct, frozen=True):
    """A way of seeing rows in a tensor: along `axis`, whose length is `before` * rows * something."""

    axis: int
    before: int

    def rows(self, array: Array, count: int) -> Array:
        """The tensor's rows first, one row flat: shape (count, elements)."""
        length = array.shape[self.axis]
        lead = array.shape[: self.axis]
        cut = array.reshape(*lead, self.before, count, length // (self.before * count), *array.shape[self.axis + 1 :])
        return np.moveaxis(cut, self.axis + 1, 0).reshape(count, -1)

    def put(self, array: Array, rows: Array, count: int) -> Array:
        """A copy of the tensor with these rows, as `rows` gives them."""
        length = array.shape[self.axis]
        lead, rest = array.shape[: self.axis], array.shape[self.axis + 1 :]
        cut = (*lead, self.before, count, length // (self.before * count), *rest)
        moved = np.moveaxis(np.empty(cut, array.dtype), self.axis + 1, 0)
        back = np.moveaxis(rows.reshape(moved.shape), 0, self.axis + 1)
        return np.ascontiguousarray(back).reshape(array.shape)


class Difference(Struct, frozen=True):
    """How far rows are from what they must be. rel: relative L2 error of the worst one, inf where shapes differ or one
    is not finite; row: the worst one's number in the second tensor; view: how rows were seen, None if the
    whole tensors are alike.
    """

    rel: float
    row: int | None = None
    view: View | None = None


def views(first: Array, second: Array, counts: tuple[int, int], axis: int | None = None) -> Iterator[View]:
    """Every way of seeing `counts` rows in two tensors that differ in the length of one axis at most."""
    if first.ndim != second.ndim:
        return
    for at in range(first.ndim) if axis is None else [axis]:
        lengths = first.shape[at], second.shape[at]
        same = first.shape[:at] + first.shape[at + 1 :] == second.shape[:at] + second.shape[at + 1 :]
        if not same or any(length % count for length, count in zip(lengths, counts, strict=True)):
            continue
        times = {length // count for length, count in zip(lengths, counts, strict=True)}
        if len(times) == 1 and (each := times.pop()):
            befores = _divisors(each) if first.size <= LARGE else list(dict.fromkeys((1, each)))
            yield from (View(at, before) for before in befores)


def _divisors(number: int) -> list[int]:
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return [*small, *(number // n for n in reversed(small) if n * n != number)]


def difference(
    first: Array, second: Array, counts: tuple[int, int], pairs: Pairs, axis: int | None = None, *, whole: bool = True
) -> Difference:
    """The difference of the rows that must be the same, in the view of which it is the smallest.

    axis: the rows lie along it; None: along any, or (whole) the tensors have no rows and are alike.
    """
    if axis is None and whole and whole_difference(first, second) == 0.0:
        return Difference(0.0)
    best = Difference(math.inf)
    for view in views(first, second, counts, axis):
        found = _in_view(first, second, counts, pairs, view)
        if best.view is None or found.rel < best.rel:
            best = found
        if best.rel == 0.0:
            break
    return best


def _in_view(first: Array, second: Array, counts: tuple[int, int], pairs: Pairs, view: View) -> Difference:
    a, b = view.rows(first, counts[0]), view.rows(second, counts[1])
    wanted = a[[p for p, _ in pairs]]
    errors = row_errors(b[[q for _, q in pairs]], wanted, a)
    if not len(errors):
        return Difference(0.0, None, view)
    worst = int(np.argmax(errors))
    return Difference(float(errors[worst]), pairs[worst][1], view)


def whole_difference(first: Array, second: Array) -> float:
    """Relative L2 error of two tensors; inf for other shapes or types."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return math.inf
    flat = first.reshape(1, -1)
    return float(row_errors(second.reshape(1, -1), flat, flat)[0])


def row_errors(rows: Array, wanted: Array, among: Array) -> Array:
    """Relative L2 error of each row. among: rows whose mean size keeps very small rows from counting too much.

    Elements that are the same and much larger than all that differ (what a mask adds) are left out of the sizes. Rows
    of integers, booleans and strings have no size: their error is the share of elements that differ.
    """
    if rows.shape[1] == 0:
        return np.zeros(len(rows))
    if not _is_real(rows.dtype):
        return np.asarray((rows != wanted).mean(axis=1, dtype=np.float64))
    kind = np.complex128 if rows.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        x, y = rows.astype(kind), wanted.astype(kind)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        finite = np.isfinite(x) & np.isfinite(y)
        differ = ~same & finite
        gaps = _sizes(np.where(differ, x - y, 0))
        top = np.abs(np.where(differ, y, 0)).max(axis=1, keepdims=True)
        sizes = _sizes(_up_to(y, np.where(top > 0, top, np.inf)))
        least = _SMALL * float(np.sqrt(np.mean(_sizes(_up_to(among.astype(kind), top.max(initial=0.0))) ** 2)))
        errors = np.where(gaps > 0, gaps / np.maximum(sizes, least), 0.0)
    errors[np.isnan(errors) | (~same & ~finite).any(axis=1)] = math.inf
    return np.asarray(errors)


def _up_to(rows: Array, top: "Array | float") -> Array:
    """The rows without what is not finite or much larger than `top`."""
    return np.where(np.isfinite(rows) & (np.abs(rows) <= _MUCH * np.asarray(top)), rows, 0)


def _sizes(rows: Array) -> Array:
    return np.asarray(np.sqrt(np.sum(np.abs(rows) ** 2, axis=1)))


def _is_real(dtype: "np.dtype[np.generic]") -> bool:
    """Whether elements are rounded: floats of any width, complex ones too."""
    return dtype.kind in "fc" or "float" in dtype.name
