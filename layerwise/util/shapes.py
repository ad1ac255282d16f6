"""Shapes, of which some dimensions may not be fixed."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from layerwise._tool.backends.feeds.shapes import frozen_shape, is_open, permutation
from layerwise.constants import DEFAULT_SHAPE_VALUE
from layerwise.logger import G_LOGGER
from layerwise.util import array


def is_dimension_dynamic(dim: Any) -> bool:
    """Whether a dimension is not fixed: None, a name, or negative."""
    return is_open(dim)


def num_dynamic_dimensions(shape: Sequence[Any]) -> int:
    """How many dimensions are not fixed."""
    return sum(map(is_dimension_dynamic, shape))


def is_shape_dynamic(shape: Sequence[Any]) -> bool:
    """Whether a dimension is not fixed."""
    return any(map(is_dimension_dynamic, shape))


def is_valid_shape_override(new_shape: Sequence[Any], original_shape: Sequence[Any]) -> bool:
    """Whether a shape has as many dimensions as another, and the same ones where that is fixed."""
    return len(new_shape) == len(original_shape) and all(
        old == new or is_dimension_dynamic(old) for old, new in zip(original_shape, new_shape, strict=True)
    )


def override_dynamic_shape(shape: Sequence[Any], default_shape_value: int | None = None) -> list[Any]:
    """The shape with 1, or another value, for dimensions that are not fixed."""
    value = DEFAULT_SHAPE_VALUE if default_shape_value is None else default_shape_value
    return [value if is_dimension_dynamic(dim) else dim for dim in shape]


def volume(obj: Sequence[Any]) -> Any:
    """The product of the dimensions."""
    return math.prod(obj)


def is_empty_shape(shape: Sequence[Any]) -> bool:
    """Whether an array of the shape has no elements."""
    return bool(volume(shape) == 0)


def try_match_shape(arr: Any, shape: Sequence[Any]) -> Any:
    """The array in another shape as far as that goes: dimensions permuted if they are the same in another order, and
    reshaped. What does not fit stays, with a warning.
    """
    there = array.shape(arr)
    if shape == there:
        return arr
    wanted = frozen_shape(there, shape)
    if len(wanted) != len(there):
        arr = _reshaped(arr, wanted)
    if len(wanted) == len(array.shape(arr)):
        arr = _permuted(arr, wanted)
    return _reshaped(arr, wanted)


def _reshaped(arr: Any, shape: Sequence[Any]) -> Any:
    arr = array.make_contiguous(arr)
    before = array.shape(arr)
    try:
        found = array.view(arr, array.dtype(arr), shape)
    except (ValueError, RuntimeError, TypeError):
        G_LOGGER.warning(f"Could not reshape array from shape: {before} to {shape}. Skipping reshape.")
        return arr
    if array.shape(found) != before:
        G_LOGGER.info(f"Reshaped array from shape: {before} to: {array.shape(found)}")
    return found


def _permuted(arr: Any, shape: Sequence[Any]) -> Any:
    order = permutation(array.shape(arr), shape)
    if order is None:
        return arr
    G_LOGGER.info(f"Permuted array of shape: {array.shape(arr)} using permutation {order}")
    return np.transpose(arr, order)
