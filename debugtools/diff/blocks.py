"""Bytes compared in blocks that fit the cache, whatever their number."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BLOCK = 1 << 20
Bytes = NDArray[np.uint8]


def raw(array: NDArray[np.generic]) -> Bytes:
    """The bytes of an array, its own memory where it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def blocks(data: Bytes) -> Iterator[Bytes]:
    """Yield consecutive blocks."""
    for start in range(0, data.size, BLOCK):
        yield data[start : start + BLOCK]


def same_bytes(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    """True if two arrays of numbers have one type, one shape and the same bits (NaN included)."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype.hasobject:
        return bool(np.array_equal(a, b))
    return all(np.array_equal(x, y) for x, y in zip(blocks(raw(a)), blocks(raw(b)), strict=True))
