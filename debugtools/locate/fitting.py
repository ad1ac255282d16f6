"""The reference's tensors as the suspect's nodes take them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.tensors import dtype_name, is_floating

Array = NDArray[Any]


def fit(array: Array, dtype: np.dtype[Any] | None) -> Array:
    """Return a tensor in the suspect's type: rounded if both are floating, converted if that changes no value.

    The tensor itself if its type is already right, not known (None), or cannot be had.
    """
    if dtype is None or array.dtype == dtype:
        return array
    names = dtype_name(array), dtype_name(dtype)
    if "string" in names:
        return array
    with np.errstate(all="ignore"):
        fitted = array.astype(dtype)
        both_floating = all(map(is_floating, names))
        return fitted if both_floating or np.array_equal(fitted.astype(array.dtype), array) else array
