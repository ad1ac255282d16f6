"""The reference's tensors as the suspect's nodes take them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff

Array = NDArray[Any]
DType = np.dtype[Any]


def fits(array: Array, dtype: DType) -> bool:
    """Whether a tensor can be had in the suspect's type: floating ones are rounded, others must keep their values."""
    names = dtype_name(array), dtype_name(dtype)
    if names[0] == names[1] or all(map(is_floating, names)):
        return True
    if "string" in names:
        return False
    with np.errstate(all="ignore"):
        return bool(np.array_equal(array.astype(dtype).astype(array.dtype), array))


def fit(array: Array, dtype: DType | None) -> Array:
    """Return a tensor that fits in the suspect's type; as it is if that is not known."""
    if dtype is None or array.dtype == dtype:
        return array
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def nudged(array: Array) -> Array:
    """Return a floating tensor with every element moved by about one rounding, up or down; any other as it is."""
    unit = unit_roundoff([dtype_name(array)])
    if not unit:
        return array
    work = array.astype(np.float64 if array.dtype.itemsize == 8 else np.float32)
    signs = np.random.default_rng(0).integers(0, 2, array.shape) * 2 - 1
    with np.errstate(all="ignore"):
        return (work * (1 + 2 * unit * signs).astype(work.dtype)).astype(array.dtype)
