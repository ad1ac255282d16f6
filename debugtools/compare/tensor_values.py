"""The values of one tensor on both sides: histograms, the error by powers of ten, the elements that are worst."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct, structs
from numpy.typing import NDArray

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.rows import LayerRow

Floats = NDArray[np.float64]

BINS = 24
WORST = 40
CHUNK = 1 << 20
LARGEST = 8e307
LOWEST, HIGHEST = -12, 6
"""The error histogram has one bin a power of ten from 1e-12 to 1e6."""


class ErrorCounts(Struct, frozen=True):
    """Elements by |a - b|. counts[k]: in [10^(lowest+k-1), 10^(lowest+k)), the first and last with what is beyond;
    exact: without a difference; not_finite: with one that is not finite.
    """

    lowest: int
    counts: list[int]
    exact: int
    not_finite: int


class ValueCounts(Struct, frozen=True):
    """A histogram. edges: of the bins, one more than there are bins; counts: of the finite elements of each side."""

    edges: list[float]
    counts: tuple[list[int], list[int]]


class Element(Struct, frozen=True):
    """An element: its index, the values of both sides, their absolute and relative difference."""

    index: list[int]
    a: int | float
    b: int | float
    abs: float
    rel: float


class TensorValues(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Both sides of a tensor. Of equal shapes of real numbers alone there are values, errors, size, the worst
    elements (largest first) and how many are over both tolerances. row: of the layer table.
    """

    row: LayerRow | None = None
    shapes: tuple[list[int], list[int]]
    dtypes: tuple[str, str]
    values: ValueCounts | None = None
    errors: ErrorCounts | None = None
    size: int = 0
    over: int = 0
    worst: list[Element] = []


def tensor_values(a: Array, b: Array, atol: float, rtol: float) -> TensorValues:
    """Describe `a` against the reference `b`: the WORST largest errors, histograms of BINS bins. Works in chunks: a
    few MB beside the arrays.
    """
    found = TensorValues(shapes=(list(a.shape), list(b.shape)), dtypes=(str(a.dtype), str(b.dtype)))
    if a.shape != b.shape or not _numeric(a) or not _numeric(b):
        return found
    low, high = _range(a, b)
    edges = np.linspace(low, high, BINS + 1)
    counts = np.zeros((2, BINS), np.int64)
    errors = _Errors(atol, rtol)
    for start, x, y in _chunks(a, b):
        for side, part in enumerate((x, y)):
            counts[side] += np.histogram(part[np.isfinite(part)], edges)[0]
        errors.add(start, x, y)
    return structs.replace(
        found, values=ValueCounts(edges.tolist(), (counts[0].tolist(), counts[1].tolist())),
        errors=errors.histogram(), over=errors.over, size=a.size,
        worst=[_element(a, b, place) for place in errors.worst()],
    )  # fmt: skip


def _numeric(array: Array) -> bool:
    return not array.dtype.hasobject and array.dtype.kind not in "cUSMm"


def _chunks(a: Array, b: Array) -> Iterator[tuple[int, Floats, Floats]]:
    flat_a, flat_b = a.reshape(-1), b.reshape(-1)
    for start in range(0, a.size, CHUNK):
        x, y = (flat[start : start + CHUNK].astype(np.float64) for flat in (flat_a, flat_b))
        yield start, x, y


def _range(a: Array, b: Array) -> tuple[float, float]:
    low, high = math.inf, -math.inf
    for _, *parts in _chunks(a, b):
        for part in parts:
            finite = part[np.isfinite(part)]
            if finite.size:
                low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    if low > high:
        return 0.0, 1.0
    low, high = max(low, -LARGEST), min(high, LARGEST)
    return (low, high) if low < high else (low - 0.5, high + 0.5)


class _Errors:
    """Absolute errors, chunk by chunk."""

    def __init__(self, atol: float, rtol: float) -> None:
        self._atol, self._rtol = atol, rtol
        self._counts = np.zeros(HIGHEST - LOWEST + 2, np.int64)
        self._exact = self._odd = self.over = 0
        self._top: list[tuple[float, int]] = []

    def add(self, start: int, x: Floats, y: Floats) -> None:
        with np.errstate(all="ignore"):
            error = np.abs(x - y)
            error[(x == y) | (np.isnan(x) & np.isnan(y))] = 0.0
            error[np.isnan(error)] = np.inf
            relative = error / np.abs(y)
            self.over += int(np.count_nonzero((error > self._atol) & ~(relative <= self._rtol)))
            inside = error[(error > 0) & np.isfinite(error)]
            powers = np.clip(np.floor(np.log10(inside)), LOWEST - 1, HIGHEST).astype(np.int64) - (LOWEST - 1)
        self._counts += np.bincount(powers, minlength=len(self._counts))
        self._exact += int(np.count_nonzero(error == 0))
        self._odd += int(np.count_nonzero(np.isinf(error)))
        self._keep_worst(start, error)

    def _keep_worst(self, start: int, error: Floats) -> None:
        kept = min(WORST, error.size)
        places = np.argpartition(error, error.size - kept)[error.size - kept :]
        self._top += [(float(error[place]), start + int(place)) for place in places if error[place] > 0]
        self._top = sorted(self._top, key=lambda item: (-item[0], item[1]))[:WORST]

    def worst(self) -> list[int]:
        return [place for _, place in self._top]

    def histogram(self) -> ErrorCounts:
        return ErrorCounts(LOWEST, self._counts.tolist(), self._exact, self._odd)


def _element(a: Array, b: Array, place: int) -> Element:
    index = [int(i) for i in np.unravel_index(place, a.shape)]
    x, y = _value(a.reshape(-1)[place]), _value(b.reshape(-1)[place])
    error = abs(x - y) if x != y else 0
    relative = float(error / abs(y)) if y else (math.inf if error else 0.0)
    return Element(index, x, y, float(error), relative)


def _value(value: Any) -> Any:
    kind = np.asarray(value).dtype.kind
    return int(value) if kind in "iub" else float(value)
