"""Data types and tensors: one table of names, and unambiguous text for values and shapes.

Type names are ONNX's in lower case ("float32", "bfloat16", "float8_e4m3fn", "int4", "bool", "string").
NumPy has no bfloat16, FP8, FP6, FP4 or 2- and 4-bit integers: ml_dtypes supplies them. Strings are NumPy object
arrays of `str`.
"""

import math
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.type_names import TYPE_NAMES, type_name

Dim = int | str | None


class DType(NamedTuple):
    """One element type: name, ONNX's TensorProto.DataType number, NumPy's type, bits per element in ONNX."""

    name: str
    onnx: int
    numpy: np.dtype[Any]
    bits: int


_PACKED = {"uint4": 4, "int4": 4, "float4_e2m1fn": 4, "uint2": 2, "int2": 2, "float6_e2m3fn": 6, "float6_e3m2fn": 6}


def _row(number: int, name: str) -> DType:
    dtype = np.dtype(object if name == "string" else getattr(ml_dtypes, name, name))
    return DType(name, number, dtype, _PACKED.get(name, 8 * dtype.itemsize))


DTYPES = tuple(_row(number, name) for number, name in TYPE_NAMES.items())
_BY_NAME = {row.name: row for row in DTYPES}
_BY_ONNX = {row.onnx: row for row in DTYPES}
_BY_NUMPY = {row.numpy: row for row in DTYPES}
_ALIASES = {
    "float": "float32", "double": "float64", "half": "float16", "str": "string", "object": "string",
    "float8e4m3fn": "float8_e4m3fn", "float8e4m3fnuz": "float8_e4m3fnuz", "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz", "float8e8m0": "float8_e8m0fnu", "float4": "float4_e2m1fn",
}  # fmt: skip
EXTENDED_NAMES = frozenset(row.name for row in DTYPES if row.numpy.isbuiltin == 2)  # not NumPy's


class TensorInfo(Struct, frozen=True):
    """A tensor's name, type and shape. A dimension is a number, a symbol or None (unknown).

    unranked: the backend takes any shape, and tells of none: what it is given by default is one number.
    """

    name: str
    dtype: str
    shape: tuple[Dim, ...] | None
    unranked: bool = False

    def fits(self, shape: Sequence[int]) -> bool:
        """Return whether an array of that shape is one of these: an unknown size may be any."""
        known = shape if self.shape is None or self.unranked else self.shape
        pairs = zip(known, shape, strict=False)
        return len(known) == len(shape) and all(not isinstance(d, int) or d < 0 or d == size for d, size in pairs)


def dtype_name(kind: Array | np.dtype[Any] | int) -> str:
    """Return the name of the type of an array, of a NumPy type or of a TensorProto.DataType number.

    NumPy's own name if ONNX has none; "unknown" for a number that is not in the table.
    """
    if isinstance(kind, int):
        return type_name(kind)
    dtype = np.dtype(kind) if isinstance(kind, np.dtype) else kind.dtype
    if dtype.kind in "OUST":
        return "string"
    row = _BY_NUMPY.get(dtype) or _BY_NUMPY.get(dtype.newbyteorder("="))
    return row.name if row else str(dtype)


def dtype_row(name: str) -> DType:
    """Return the table's row for a type name, in capitals or not. UsageError lists the valid ones."""
    low = name.lower()
    row = _BY_NAME.get(_ALIASES.get(low, low))
    if row is None:
        raise UsageError(f"unknown data type {shown(name, 60)!r}; one of: {', '.join(_BY_NAME)}")
    return row


def to_numpy(name: str) -> np.dtype[Any]:
    """Return NumPy's type for a type name."""
    return dtype_row(name).numpy


def onnx_to_numpy(number: int) -> np.dtype[Any]:
    """Return NumPy's type for a TensorProto.DataType number. UsageError if there is none."""
    row = _BY_ONNX.get(number)
    if row is None:
        raise UsageError(f"ONNX data type {number} is not known to this version")
    return row.numpy


def to_onnx(name: str) -> int:
    """Return the TensorProto.DataType number for a type name."""
    return dtype_row(name).onnx


def is_floating(name: str) -> bool:
    """True for every floating-point type, including bfloat16, FP8, FP6 and FP4."""
    return "float" in name


def is_integral(name: str) -> bool:
    """True for signed and unsigned integers (bool is not one)."""
    return name.startswith(("int", "uint"))


def packed_nbytes(name: str, shape: Sequence[int]) -> int:
    """Return the bytes that a tensor takes in an ONNX file, which packs small types (FP6: 4 in 3 bytes)."""
    return (math.prod(shape) * dtype_row(name).bits + 7) // 8


def format_value(value: Any) -> str:
    """Format one element so that different values look different; text is quoted and escaped."""
    if isinstance(value, str | bytes):
        return f'"{shown(value if isinstance(value, str) else value.decode("utf-8", "replace"), 200)}"'
    dtype = np.asarray(value).dtype
    name = dtype_name(dtype)
    if name in EXTENDED_NAMES:
        return f"{float(value):.4g}" if is_floating(name) else str(int(value))
    return str(value)


def format_shape(shape: Sequence[Dim] | None) -> str:
    """Format a shape as `1x3xN`; `scalar` for no dimensions, `?` for unknown ones."""
    if shape is None:
        return "?"
    return "x".join("?" if dim is None else shown(str(dim), 20) for dim in shape) or "scalar"


def format_array(array: Array, edge: int = 3, width: int = 75) -> str:
    """Format an array as NumPy prints it, in lines of `width` characters.

    Above 1000 elements, only `edge` at each end of each dimension are shown. -1 means no limit, for either.
    """
    if array.dtype.kind == "V" and dtype_name(array) not in EXTENDED_NAMES:
        return f"{array.size} raw elements of {array.itemsize} bytes (their type is not known)"
    if array.ndim == 0:
        return format_value(array[()])
    plain = dtype_name(array) not in EXTENDED_NAMES and array.dtype.kind != "O"
    return np.array2string(
        array,
        max_line_width=sys.maxsize if width < 0 else width,
        edgeitems=sys.maxsize if edge < 0 else edge,
        threshold=sys.maxsize if edge < 0 else 1000,
        formatter=None if plain else {"all": format_value},
    )
