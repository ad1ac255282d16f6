"""TensorRT's data types against numpy's and ONNX's."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx

from ._arguments import CLASSES
from ._classes import behaves

_NUMPY: dict[str, Any] = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT8": np.int8,
    "INT32": np.int32,
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "FP8": ml_dtypes.float8_e4m3fn,
    "BF16": ml_dtypes.bfloat16,
    "INT64": np.int64,
    "INT4": ml_dtypes.int4,
    "FP4": ml_dtypes.float4_e2m1fn,
    "E8M0": ml_dtypes.float8_e8m0fnu,
}
_ONNX = {
    "FLOAT": "FLOAT",
    "HALF": "FLOAT16",
    "INT8": "INT8",
    "INT32": "INT32",
    "BOOL": "BOOL",
    "UINT8": "UINT8",
    "FP8": "FLOAT8E4M3FN",
    "BF16": "BFLOAT16",
    "INT64": "INT64",
    "INT4": "INT4",
    "FP4": "FLOAT4E2M1",
}
_HALF_BYTES = ("INT4", "FP4")


@behaves("DataType")
class _DataType:
    @property
    def itemsize(self) -> Any:
        name = self._name
        if name == "E8M0":
            return None
        return 0.5 if name in _HALF_BYTES else np.dtype(_NUMPY[name]).itemsize


def numpy_of(kind: Any) -> np.dtype[Any]:
    """The numpy (or ml_dtypes) type of a DataType."""
    return np.dtype(_NUMPY[kind.name])


def dtype_of(kind: Any) -> Any:
    """The DataType of a numpy type; TypeError where there is none (float64)."""
    for name, candidate in _NUMPY.items():
        if np.dtype(candidate) == np.dtype(kind):
            return getattr(CLASSES["DataType"], name)
    raise TypeError(f"unsupported numpy data type for weights: {np.dtype(kind)}")


def onnx_of(kind: Any) -> int:
    """ONNX's element type of a DataType."""
    return int(onnx.TensorProto.DataType.Value(_ONNX[kind.name]))


def dtype_of_onnx(element: int) -> Any:
    """The DataType of an ONNX element type; DOUBLE becomes FLOAT as in the real parser; None where there is none."""
    name = onnx.TensorProto.DataType.Name(element)
    if name == "DOUBLE":
        name = "FLOAT"
    for ours, theirs in _ONNX.items():
        if theirs == name:
            return getattr(CLASSES["DataType"], ours)
    return None
