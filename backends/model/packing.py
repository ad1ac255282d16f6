"""Packs elements smaller than a byte without gaps, the first in the lowest bits.

Source: onnx.proto, TensorProto.raw_data.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]


def pack(codes: Bytes, bits: int) -> Bytes:
    """Pack the low 2, 4 or 6 bits of each element (n,) into ceil(n * bits / 8) bytes."""
    group, share, word = _group(bits)
    kept = codes & np.uint8((1 << bits) - 1)
    rows = np.append(kept, np.zeros(-kept.size % share, np.uint8)).reshape(-1, share).astype(word)
    words: NDArray[Any] = np.bitwise_or.reduce(rows << _steps(share, bits, word), axis=1)
    parts = words[:, None] >> _steps(group, 8, word)
    packed: Bytes = parts.astype(np.uint8).reshape(-1)[: (codes.size * bits + 7) // 8]
    return packed


def unpack(packed: Bytes, bits: int, count: int) -> Bytes:
    """Return `count` elements of 2, 4 or 6 bits, one per byte with high bits 0."""
    group, share, word = _group(bits)
    words: NDArray[Any] = packed
    if group > 1:
        rows = np.append(packed, np.zeros(-packed.size % group, np.uint8)).reshape(-1, group)
        words = np.bitwise_or.reduce(rows.astype(word) << _steps(group, 8, word), axis=1)
    codes: NDArray[Any] = (words[:, None] >> _steps(share, bits, word)) & word.type((1 << bits) - 1)
    return codes.astype(np.uint8, copy=False).reshape(-1)[:count]


def _steps(count: int, bits: int, word: np.dtype[Any]) -> NDArray[Any]:
    return np.arange(0, count * bits, bits, dtype=word)


def _group(bits: int) -> tuple[int, int, np.dtype[Any]]:
    """Return the bytes that a whole number of elements fills, how many elements, and a type that holds them."""
    return (3, 4, np.dtype(np.uint32)) if bits == 6 else (1, 8 // bits, np.dtype(np.uint8))
