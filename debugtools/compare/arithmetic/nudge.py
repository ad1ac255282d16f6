"""Tensors whose elements are moved by about one rounding: how far a result moves with them tells its condition."""

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff


def nudged(array: Array, seed: int = 0) -> Array:
    """Return a floating tensor with every element moved by about one rounding, up or down; any other as it is.

    seed: other ones move other elements up.
    """
    unit = unit_roundoff([dtype_name(array)])
    if not unit:
        return array
    work = array.astype(np.float64 if array.dtype.itemsize == 8 else np.float32)
    signs = np.random.default_rng(seed).integers(0, 2, array.shape) * 2 - 1
    with np.errstate(all="ignore"):
        moved = (work * (1 + 2 * unit * signs).astype(work.dtype)).astype(array.dtype)
    return np.where(np.isfinite(moved), moved, array)  # the largest value of a type stays one
