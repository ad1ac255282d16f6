"""How far two fingerprints are apart, and within which distance values agree.

Two distances, both 0 for equal tensors. In order: the estimated relative L2 distance of two tensors of equal flat
order, about 1.4 for two that have nothing in common. Any order: of the marks, the mean and the scale.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.fingerprint import NO_SCALE, Fingerprint

FAR = 9.0
"""A distance that nothing comparable has."""
_ROUNDING = {"float16": 2e-2, "bfloat16": 0.1}
COARSE = 0.3
FINE = 2e-3


class Apart(NamedTuple):
    """in_order, any_order: see above; FAR where they cannot be compared."""

    in_order: float
    any_order: float

    @property
    def nearest(self) -> float:
        """The one to go by: any order, unless the flat order is the same."""
        return min(self)


def tolerance(one: Fingerprint, other: Fingerprint, quantised: bool) -> float:
    """Within which distance two values agree. quantised: a side holds quantised tensors."""
    if one.kind != "float":
        return 0.0
    types = [_ROUNDING.get(p.dtype, FINE if p.dtype in ("float32", "float64") else COARSE) for p in (one, other)]
    return max(*types, COARSE if quantised else 0.0)


def comparable(one: Fingerprint, other: Fingerprint) -> bool:
    """Whether two tensors may be one: elements of one kind, equally many."""
    return one.kind == other.kind and (one.shape == other.shape or one.size == other.size)


class _Decoded:
    """A fingerprint's arrays, unpacked; the sketch of the values as they are."""

    def __init__(self, known: Fingerprint) -> None:
        self.size = known.size
        self.unit = math.exp(known.log_rms)
        self.sketch = np.frombuffer(known.sketch, "<f4") * np.float64(self.unit)
        marks = np.frombuffer(known.marks, "<f4").astype(np.float64)
        self.shape = np.empty(marks.size + 1)
        np.divide(marks, math.sqrt(max(marks.size, 1)), out=self.shape[:-1])
        self.shape[-1] = known.mean
        self.hidden = known.hidden / max(self.size, 1)


_decoded = lru_cache(maxsize=8192)(_Decoded)  # each is compared with many


def distance(one: Fingerprint, other: Fingerprint) -> Apart:
    """Return the distances of two fingerprints."""
    if one.kind != other.kind:
        return Apart(FAR, FAR)
    mine, theirs = _decoded(one), _decoded(other)
    if mine.size != theirs.size:
        return Apart(FAR, FAR)
    if one.kind != "float":
        return Apart(0.0 if one.order == other.order else FAR, 0.0 if one.values == other.values else FAR)
    if not (one.sketch and other.sketch):
        same = 0.0 if one.sketch == other.sketch else FAR
        return Apart(same, same)
    if NO_SCALE in (one.log_rms, other.log_rms):
        same = 0.0 if one.log_rms == other.log_rms else FAR
        return Apart(same, same)
    share = abs(mine.hidden - theirs.hidden)
    step = one.log_rms - other.log_rms
    moved, shape = mine.sketch - theirs.sketch, mine.shape - theirs.shape
    in_order = math.sqrt(float(moved @ moved)) / max(mine.unit, theirs.unit) + share
    return Apart(in_order, math.sqrt(float(shape @ shape) + min(abs(step), FAR) ** 2) + share)


def distances(first: list[Fingerprint], second: list[Fingerprint]) -> tuple[Array, Array]:
    """Return both distances of each of `first` to each of `second`, all floats of one size with visible elements."""
    one, other = _Columns(first), _Columns(second)
    step = np.abs(one.log_rms[:, None] - other.log_rms)
    empty = one.zero[:, None] != other.zero
    any_order = np.sqrt(_squared(one.shape, other.shape) + np.minimum(step, FAR) ** 2)
    any_order += _share(one, other)
    larger = np.maximum(one.log_rms[:, None], other.log_rms)
    a, b = np.exp(one.log_rms[:, None] - larger), np.exp(other.log_rms - larger)
    products = one.sketch @ other.sketch.T
    squared = a * a * one.power[:, None] + b * b * other.power - 2 * a * b * products
    in_order = np.sqrt(np.maximum(squared, 0.0)) + _share(one, other)
    both = one.zero[:, None] & other.zero
    for found in (in_order, any_order):
        found[empty] = FAR
        found[both] = 0.0
    return in_order, any_order


class _Columns:
    def __init__(self, prints: list[Fingerprint]) -> None:
        self.sketch = _rows([p.sketch for p in prints])
        self.power = np.square(self.sketch).sum(1)
        marks = _rows([p.marks for p in prints])
        mean = np.array([[p.mean] for p in prints])
        self.shape = np.concatenate([marks / math.sqrt(marks.shape[1]), mean], axis=1)
        self.log_rms = np.array([p.log_rms for p in prints])
        self.zero = self.log_rms == NO_SCALE
        self.hidden = np.array([p.hidden / max(p.size, 1) for p in prints])


def _rows(data: list[bytes]) -> Array:
    return np.frombuffer(b"".join(data), "<f4").reshape(len(data), -1).astype(np.float64)


def _squared(a: Array, b: Array) -> Array:
    found = np.square(a).sum(1)[:, None] + np.square(b).sum(1) - 2 * (a @ b.T)
    result: Array = np.maximum(found, 0.0)
    return result


def _share(one: _Columns, other: _Columns) -> Array:
    """The part of the elements that is hidden on one side alone."""
    found: Array = np.abs(one.hidden[:, None] - other.hidden)
    return found
