"""Values of one initializer as an array: memory-mapped in place, or parsed from typed fields.

Elements smaller than a byte are packed without gaps, the first in the lowest bits (onnx.proto, TensorProto.raw_data).
"""

import math
import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.model.structure import TensorRecord, WeightRef
from layerwise._tool.backends.tensors import DType, dtype_name, dtype_row
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

Bytes = NDArray[np.uint8]
_MOST_DIMENSIONS = 64  # NumPy's limit


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


def mapped_array(model: Path, ref: WeightRef) -> Array:
    """Return the values at `ref`, read-only, without copying; elements under 8 bits are unpacked into a copy.

    BadFile, naming `model`, if they do not match the shape and type.
    """
    start = ref.offset % mmap.ALLOCATIONGRANULARITY
    _check_size(model, ref)
    if not ref.nbytes:
        return raw_array(model, ref, b"")
    length, offset = ref.nbytes + start, ref.offset - start
    try:
        with ref.file.open("rb") as stream:
            data = mmap.mmap(stream.fileno(), length, access=mmap.ACCESS_READ, offset=offset)
    except (OSError, ValueError) as error:
        raise BadFile(ref.file, f"values of initializer {shown(ref.name, 200)!r}: {error}") from error
    return raw_array(model, ref, data, start)


def raw_array(model: Path, ref: WeightRef, data: bytes | mmap.mmap, start: int = 0) -> Array:
    """Return `ref.nbytes` bytes of `data` from `start` as a read-only array of the shape and type of `ref`."""
    row, count = _check_size(model, ref)
    if row.bits < 8:
        packed = np.frombuffer(data, np.uint8, ref.nbytes, start)
        return _unpacked(packed, row, count).reshape(ref.dims)
    return np.frombuffer(data, row.numpy.newbyteorder("<"), count, start).reshape(ref.dims)


def inline_array(model: Path, tensor: TensorRecord, structure: bytes) -> Array:
    """Return the values of a tensor that a structure's bytes hold. BadFile, naming `model`, if they do not match it."""
    if tensor.data is None:
        return parsed_array(model, tensor.name, structure[tensor.start : tensor.end])
    start, end = tensor.data
    ref = WeightRef(tensor.name, tensor.dtype, tuple(tensor.dims), model, 0, end - start)
    return raw_array(model, ref, structure[start:end])


def parsed_array(model: Path, name: str, message: bytes) -> Array:
    """Return the values of a serialised TensorProto that holds them in typed fields."""
    import onnx
    from google.protobuf.message import DecodeError
    from onnx import numpy_helper

    try:
        tensor = onnx.TensorProto.FromString(message)
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            raise BadFile(model, f"initializer {shown(name, 200)!r}: its external data was ignored")
        array = numpy_helper.to_array(tensor)
    except LayerwiseError:
        raise
    except (DecodeError, ValueError, TypeError, KeyError, UnicodeDecodeError, OverflowError) as error:
        raise BadFile(model, f"initializer {shown(name, 200)!r}: {in_words(error)}") from error
    array.flags.writeable = False
    return array


def _check_size(model: Path, ref: WeightRef) -> tuple[DType, int]:
    """Return the type and the number of elements, checked against the number of bytes."""
    label, name = f"initializer {shown(ref.name, 200)!r}", dtype_name(ref.dtype)
    if name in ("unknown", "string"):
        raise BadFile(model, f"{label}: data type {ref.dtype} cannot be read")
    row = dtype_row(name)
    extent = math.prod(d for d in ref.dims[:_MOST_DIMENSIONS] if d)  # NumPy refuses it even next to a 0
    if min(ref.dims, default=0) < 0 or len(ref.dims) > _MOST_DIMENSIONS or extent >= 1 << 48:
        raise BadFile(model, f"{label}: shape {shown(str(list(ref.dims[:65])), 200)}")
    count = math.prod(ref.dims)
    if ref.nbytes != (count * row.bits + 7) // 8:
        raise BadFile(model, f"{label}: {ref.nbytes} bytes for {name} {list(ref.dims)}")
    return row, count


def _unpacked(packed: NDArray[np.uint8], row: DType, count: int) -> Array:
    codes = unpack(packed, row.bits, count)
    if row.name.startswith("int"):
        sign = np.uint8(1 << (row.bits - 1))
        return ((codes ^ sign).astype(np.int8) - np.int8(sign)).astype(row.numpy)
    return codes.view(row.numpy) if row.name.startswith("float") else codes.astype(row.numpy)
