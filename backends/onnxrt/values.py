"""Converts arrays to onnxruntime's values and back, including types that NumPy lacks.

onnxruntime rejects ml_dtypes arrays, but accepts the same bits through an OrtValue with an explicit ONNX type.
Types under 8 bits are packed as in TensorProto.raw_data.
"""

import ctypes
import math
import re
from typing import Any

import numpy as np
from onnxruntime import OrtValue

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.weight_arrays import pack, unpack
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name, dtype_row, onnx_to_numpy, packed_nbytes

_TENSOR = re.compile(r"tensor\((\w+)\)")
_SPELLING = {
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float4e2m1": "float4_e2m1fn",
    "float": "float32",
    "double": "float64",
}
_BITS: dict[int, np.dtype[Any]] = {8: np.dtype(np.uint8), 16: np.dtype(np.uint16)}


def type_name(ort_type: str) -> str:
    """Return our name for onnxruntime's type: `tensor(double)` is float64; others are unchanged."""
    match = _TENSOR.fullmatch(ort_type)
    return _SPELLING.get(match[1], match[1]) if match else ort_type


def is_plain(ort_type: str) -> bool:
    """Return whether onnxruntime's own NumPy conversion handles the type, including sequence elements."""
    match = _TENSOR.search(ort_type)
    return match is None or _SPELLING.get(match[1], match[1]) not in EXTENDED_NAMES


def is_tensor(ort_type: str) -> bool:
    """Return whether it is a tensor, not a sequence, optional or map."""
    return _TENSOR.fullmatch(ort_type) is not None


def to_ort(array: Array) -> Any:
    """Return an OrtValue on the CPU that shares the array's memory; types under 8 bits are repacked."""
    row = dtype_row(dtype_name(array))
    if row.name == "string":
        raise UsageError("onnxruntime cannot be fed strings together with types that NumPy lacks")
    array = np.asarray(array, order="C")
    if row.name not in EXTENDED_NAMES:
        return OrtValue.ortvalue_from_numpy(array)
    if row.bits in _BITS:
        return OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(_BITS[row.bits]), row.onnx)
    value = OrtValue.ortvalue_from_shape_and_type(list(array.shape), row.onnx)
    packed = pack(array.reshape(-1).view(np.uint8), row.bits)
    ctypes.memmove(value.data_ptr(), packed.ctypes.data, packed.nbytes)
    return value


def from_ort(value: Any) -> Array:
    """Return a copy of an OrtValue's tensor, which must be on the CPU, in NumPy's or ml_dtypes' type."""
    dtype = onnx_to_numpy(value.element_type())
    name, shape = dtype_name(dtype), tuple(value.shape())
    if name not in EXTENDED_NAMES:
        return np.array(value.numpy())
    packed = np.empty(packed_nbytes(name, shape), np.uint8)
    if packed.nbytes:
        ctypes.memmove(packed.ctypes.data, value.data_ptr(), packed.nbytes)
    bits = dtype_row(name).bits
    elements = packed if bits >= 8 else unpack(packed, bits, math.prod(shape))
    return elements.view(dtype).reshape(shape)
