"""Arrays of another shape than an input's: dimensions in another order, or other dimensions of as many elements."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array


def is_open(dim: Any) -> bool:
    """Whether a dimension is not fixed: None, a name, or negative."""
    return not isinstance(dim, int) or dim < 0


def frozen_shape(there: Sequence[int], shape: Sequence[Any]) -> Sequence[Any]:
    """`shape` as an array of shape `there` can have it: an open dimension is what the others leave of its elements, of
    several each is that at its place. Left as it is where neither tells.
    """
    count = sum(map(is_open, shape))
    if count == 1:
        fixed = math.prod(dim for dim in shape if not is_open(dim))
        left = math.prod(there) // fixed if fixed else 0
        return [left if is_open(dim) else dim for dim in shape]
    if not count or len(shape) != len(there):
        return shape
    return [have if is_open(dim) else dim for dim, have in zip(shape, there, strict=True)]


def permutation(there: Sequence[int], shape: Sequence[Any]) -> list[int] | None:
    """The order of dimensions that makes `shape`: each is the first of its size that was not taken. None if there is
    none, or they are in order.
    """
    if any(map(is_open, shape)) or sorted(there) != sorted(shape):
        return None
    left = list(enumerate(there))
    order = []
    for size in shape:
        place = next(place for place in left if place[1] == size)
        left.remove(place)
        order.append(place[0])
    return None if order == sorted(order) else order


def reshaped(array: Array, shape: Sequence[Any]) -> Array | None:
    """The array as `shape`: permuted where the sizes are the same in another order, else reshaped; None if neither."""
    wanted = frozen_shape(array.shape, shape)
    if (order := permutation(array.shape, wanted)) is not None:
        return np.transpose(array, order)
    if any(map(is_open, wanted)) or math.prod(wanted) != array.size:
        return None
    return array.reshape(tuple(wanted))
