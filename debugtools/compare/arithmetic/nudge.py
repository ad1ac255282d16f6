"""Tensors whose elements are moved by about one rounding: how far a result moves with them tells its condition."""

import math
from collections.abc import Callable, Mapping

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.sentinels import HUGE, masking
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff

_TRIES, _IDLE = 128, 32  # of roundings that may decide otherwise; of them without one that does
_APART = 4.0  # units of rounding


def nudged(array: Array, seed: int = 0, times: float = 1.0) -> Array:
    """Return a floating tensor with every element moved by about one rounding, up or down; any other as it is. So is
    what stands for "nothing here" by its size: beside -3.4e38 what both sides have added to it is lost on both.

    times: by that many roundings. seed: other ones move other elements up; two inputs of one node that move alike would
    hide that it subtracts them.
    """
    unit = unit_roundoff([dtype_name(array)])
    if not unit:
        return array
    work = array.astype(np.float64 if array.dtype.itemsize == 8 else np.float32)
    signs = np.random.default_rng(seed).integers(0, 2, array.shape) * 2 - 1
    with np.errstate(all="ignore"):
        moved = (work * (1 + 2 * times * unit * signs).astype(work.dtype)).astype(array.dtype)
        stays = ~(np.isfinite(moved) & (np.abs(work) < HUGE))  # the largest value of a type stays one
    return np.where(stays, array, moved)


def scattered(array: Array, size: float, seed: int = 0) -> Array:
    """Return a floating tensor with an error of relative L2 length `size` spread evenly over all elements, as that of
    quantising it is, and each channel (axis 1 of images, else the last) off by a factor of that size, as what
    quantising the weights that it is multiplied with does; any other as it is. The length is that of what no mask
    hides: beside -3.4e38 any other error would be none.
    """
    if not unit_roundoff([dtype_name(array)]) or not array.size:
        return array
    work = array.astype(np.float64)
    small = np.abs(work) < HUGE
    hidden = masking(np.where(small, work, 0.0))
    seen = small if hidden is None else small & ~hidden
    step = size * math.sqrt(3 * float(np.square(work[seen]).mean())) if seen.any() else 0.0
    random = np.random.default_rng(seed)
    moved = work + random.uniform(-step, step, array.shape)
    if array.ndim:
        axis = 1 if array.ndim == 4 else array.ndim - 1
        factors = random.normal(0, size, [n if i == axis else 1 for i, n in enumerate(array.shape)])
        moved += np.where(seen, work, 0.0) * factors
    with np.errstate(all="ignore"):
        return np.where(small, moved, work).astype(array.dtype)


def decided(
    found: Array, feed: Mapping[str, Array], make: Callable[[Mapping[str, Array]], Array | None], unit: float
) -> bool:
    """Return whether values that do not round are those that `make` gives for a feed, but for what rounding in it to a
    type of that unit roundoff decides, such as the order of scores that are nearly equal.

    A backend may read a tensor before it is rounded to what was observed of it. make: None where it does not run.
    """
    still = make(feed)
    if still is None or found.shape != still.shape:
        return False
    open_, lowest, highest = np.asarray(found != still), still, still
    idle = 0 if unit and any(unit_roundoff([dtype_name(array)]) for array in feed.values()) else _IDLE
    for seed in range(_TRIES):
        if idle >= _IDLE or not open_.any():
            break
        random = np.random.default_rng(seed)
        moved = make({name: _jittered(array, unit, random) for name, array in feed.items()})
        before = np.count_nonzero(open_)
        if moved is not None and moved.shape == still.shape:
            open_ = open_ & (found != moved)
            if still.dtype.kind in "iu":
                lowest, highest = np.minimum(lowest, moved), np.maximum(highest, moved)
                open_ &= ~_among(found, lowest, highest, unit)
        idle = 0 if np.count_nonzero(open_) < before else idle + 1
    return not open_.any()


def _jittered(array: Array, unit: float, random: np.random.Generator) -> Array:
    """A floating tensor with every element moved by anything up to one rounding; any other as it is."""
    if not unit_roundoff([dtype_name(array)]):
        return array
    work = array.astype(np.float64)
    with np.errstate(all="ignore"):
        moved = (work * (1 + 2 * unit * random.uniform(-1, 1, array.shape))).astype(array.dtype)
    return np.where(np.isfinite(moved), moved, array)


def _among(found: Array, lowest: Array, highest: Array, unit: float) -> Array:
    """Where a value lies between those that rounding leads to, and these are amounts a rounding apart, such as the
    steps of a quantiser: between two places may lie any."""
    low, high, value = (array.astype(np.float64) for array in (lowest, highest, found))
    apart = high - low <= _APART * unit * np.maximum(np.abs(low), np.abs(high)) + 1
    return np.asarray((low <= value) & (value <= high) & apart)
