"""How one tensor becomes another of the same values: reshaped, permuted, reshaped."""

import math
from collections.abc import Iterator
from itertools import islice, permutations

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.alignment import Layout
from layerwise._tool.debugtools.align.distance import Apart
from layerwise._tool.debugtools.align.fingerprint import Fingerprint
from layerwise._tool.debugtools.align.summary import LANDMARKS

_MOST = 6000  # layouts that are tried
_SAMPLE = 96
_ROUGHLY = 0.2  # of the mean size
_HUGE = 1e30
_ROUNDING = 1e-5
_AXES = 6  # more are not permuted
_SAME_ORDER = 0.3
_MOVED, _EXACT = 500.0, 1e-4  # equal in distribution, but not in order: some elements are elsewhere


def find_layout(a: Array, b: Array, within: float = 1e-2) -> Layout | None:
    """Return how `b` becomes `a`, None if no layout does; the one that changes least where several do.

    Arrays with equally many elements. Tried on a sample, then verified on all elements: the relative L2 distance is at
    most `within`. Integers and the like have to be equal.
    """
    if a.size != b.size or not a.size or not _same_values(a, b, within):
        return None
    for layout in _candidates(a.shape, b.shape, a, b):
        with np.errstate(all="ignore"):
            if _apart(a, layout(b)) <= within:
                return layout
    return None


def _same_values(a: Array, b: Array, within: float) -> bool:
    """Whether the sorted values agree: no layout brings two arrays nearer to each other than sorting them does."""
    if a.dtype.kind not in "fV" or b.dtype.kind not in "fV":
        return bool(np.array_equal(np.sort(a, axis=None), np.sort(b, axis=None)))
    with np.errstate(all="ignore"):
        p, q = (x.reshape(-1).astype(np.float32) for x in (a, b))
        p, q = (np.sort(x[np.abs(x) < _HUGE]) for x in (p, q))
        return p.size == q.size and _apart(p, q) <= within + _ROUNDING


def _candidates(shape: tuple[int, ...], other: tuple[int, ...], a: Array, b: Array) -> Iterator[Layout]:
    at = _sample_places(a.size)
    sample, values = _Sample(a.reshape(-1)[at], b.reshape(-1)), b.reshape(-1)
    for layout in islice(layouts(shape, other), _MOST):
        if sample.like(values[sources(layout, other, at)]):
            yield layout


class _Sample:
    """Some elements of a tensor, and whether others (of the same values: `all_values`) are roughly these."""

    def __init__(self, wanted: Array, all_values: Array) -> None:
        self._floats = wanted.dtype.kind in "fV"
        self._wanted = wanted.astype(np.float64) if self._floats else wanted
        if self._floats:
            self._finite = np.isfinite(self._wanted)
            self._all_finite = bool(self._finite.all() and np.isfinite(all_values.astype(np.float32)).all())
            sizes = np.abs(self._wanted[self._finite])
            self._near = _ROUGHLY * float(sizes.mean()) if sizes.size else 0.0

    def like(self, values: Array) -> bool:
        """Whether at least half of those that are finite on both sides agree."""
        if not self._floats:
            return bool(np.array_equal(self._wanted, values))
        found = values.astype(np.float64)
        near = np.abs(found - self._wanted) <= self._near
        if self._all_finite:
            return 2 * int(np.count_nonzero(near)) >= near.size
        both = self._finite & np.isfinite(found)
        return 2 * int(np.count_nonzero(near & both)) >= int(np.count_nonzero(both))


def _apart(x: Array, y: Array) -> float:
    if x.dtype.kind not in "fV" or y.dtype.kind not in "fV":
        return 0.0 if np.array_equal(x, y) else math.inf
    p, q = x.astype(np.float64).reshape(-1), y.astype(np.float64).reshape(-1)
    both = (np.abs(p) < _HUGE) & (np.abs(q) < _HUGE)
    if np.count_nonzero(both) < x.size:
        if not np.array_equal(np.abs(p) < _HUGE, np.abs(q) < _HUGE):
            return math.inf
        p, q = p[both], q[both]
    scale = math.sqrt(max(float(p @ p), float(q @ q)))
    return math.sqrt(float((p - q) @ (p - q))) / scale if scale else 0.0


def layouts(shape: tuple[int, ...], other: tuple[int, ...]) -> Iterator[Layout]:
    """Yield the ways in which a tensor of shape `other` may become one of `shape`, which has as many elements.

    A reshape, then permutations of the axes of either shape, then of axes that are split.
    """
    yield Layout() if shape == other else Layout(after=shape)
    seen: set[tuple[tuple[int, ...], tuple[int, ...]]] = set()
    for dims in _split(_thick(other), _thick(shape)):
        for order in _orders(len(dims)):
            if (dims, order) not in seen:
                seen.add((dims, order))
                yield _layout(other, dims, order, shape)
    for dims in _split(_thick(shape), _thick(other)):
        for order in _orders(len(dims)):  # the place in the other's order of each axis
            before = tuple(dims[order.index(k)] for k in range(len(dims)))
            if (before, order) not in seen:
                seen.add((before, order))
                yield _layout(other, before, order, shape)


def _layout(other: tuple[int, ...], before: tuple[int, ...], order: tuple[int, ...], shape: tuple[int, ...]) -> Layout:
    permuted = tuple(before[k] for k in order)
    return Layout(() if before == other else before, order, None if permuted == shape else shape)


def _thick(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(d for d in shape if d != 1)


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    if count <= _AXES:
        yield from islice(permutations(range(count)), 1, None)


def _split(dims: tuple[int, ...], factors: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The shape itself, then with one axis split by one of the factors, then with two."""
    level = [dims]
    for _ in range(3):
        yield from level
        level = list(dict.fromkeys(new for old in level for new in _once(old, factors)))[:200]


def _once(dims: tuple[int, ...], factors: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for place, size in enumerate(dims):
        for factor in dict.fromkeys(factors):
            if factor < size and size % factor == 0:
                yield (*dims[:place], factor, size // factor, *dims[place + 1 :])
                yield (*dims[:place], size // factor, factor, *dims[place + 1 :])


def sources(layout: Layout, other: tuple[int, ...], at: Array) -> Array:
    """The flat positions in the other tensor of flat positions in the one that the layout makes of it."""
    before = layout.before or other
    if not layout.permutation:
        return at
    permuted = tuple(before[k] for k in layout.permutation)
    coordinates = np.unravel_index(at, permuted)
    back: list[Array] = [coordinates[0]] * len(before)
    for place, k in enumerate(layout.permutation):
        back[k] = coordinates[place]
    found: Array = np.ravel_multi_index(tuple(back), before)
    return found


def layout_of_prints(mine: Fingerprint, theirs: Fingerprint, apart: Apart, free: bool = False) -> Layout | None:
    """Return how the second tensor becomes the first, if their fingerprints tell; None for equal shapes.

    free: equal shapes may be permuted, which is a fault if the two stand at the same place of two graphs.

    Where the flat order is the same, a reshape; else the permutation that brings the largest and the smallest elements
    where they are in the first one, if only one does. Not verified on the values.
    """
    if mine.shape == theirs.shape and (not free or apart.in_order <= _SAME_ORDER):
        return None
    if apart.in_order <= _SAME_ORDER and apart.any_order * _MOVED > apart.in_order - _EXACT:
        return Layout(after=mine.shape)
    if apart.any_order > _SAME_ORDER or not (mine.places and theirs.places):
        return None
    here, there = np.frombuffer(mine.places, "<i8"), np.frombuffer(theirs.places, "<i8")
    known = here >= 0
    if np.count_nonzero(known) < LANDMARKS:
        return None
    places = set(there[there >= 0].tolist())
    probe = np.concatenate([here[known], _sample_places(mine.size)])
    found: dict[bytes, tuple[int, Layout]] = {}
    for layout in islice(layouts(mine.shape, theirs.shape), _MOST // 10):
        mapped = sources(layout, theirs.shape, probe)
        hits = sum(int(k) in places for k in mapped[:-_SAMPLE])
        found.setdefault(mapped.tobytes(), (hits, layout))
    ranked = sorted(found.values(), key=lambda item: -item[0])
    sure = ranked[0][0] >= 0.9 * float(np.count_nonzero(known)) and (len(ranked) == 1 or ranked[1][0] < ranked[0][0])
    return ranked[0][1] if sure else None


def _sample_places(size: int) -> Array:
    return np.random.Generator(np.random.PCG64(1)).integers(0, size, _SAMPLE)
