"""Tensors whose elements are moved by about one rounding: how far a result moves with them tells its condition."""

import math

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff


def nudged(array: Array, seed: int = 0, times: float = 1.0) -> Array:
    """Return a floating tensor with every element moved by about one rounding, up or down; any other as it is.

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
    return np.where(np.isfinite(moved), moved, array)  # the largest value of a type stays one


def scattered(array: Array, size: float, seed: int = 0) -> Array:
    """Return a floating tensor with an error of relative L2 length `size` spread evenly over all elements, as that of
    quantising it is, and each channel (axis 1 of images, else the last) off by a factor of that size, as what
    quantising the weights that it is multiplied with does; any other as it is.
    """
    if not unit_roundoff([dtype_name(array)]) or not array.size:
        return array
    work = array.astype(np.float64)
    finite = np.where(np.isfinite(work), work, 0.0)
    step = size * math.sqrt(3 * float(np.square(finite).mean()))
    random = np.random.default_rng(seed)
    moved = work + random.uniform(-step, step, array.shape)
    if array.ndim:
        axis = 1 if array.ndim == 4 else array.ndim - 1
        moved += work * random.normal(0, size, [n if i == axis else 1 for i, n in enumerate(array.shape)])
    with np.errstate(all="ignore"):
        return np.where(np.isfinite(work), moved, work).astype(array.dtype)
