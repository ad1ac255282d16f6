"""Data types that all modules' types are converted to and from."""

from layerwise.datatype.datatype import DataType, DataTypeEntry, register_dtype_exporter, register_dtype_importer
from layerwise.datatype.numpy import from_numpy
from layerwise.datatype.onnx import from_onnx
from layerwise.datatype.onnxrt import from_onnxrt
from layerwise.datatype.tensorrt import from_tensorrt
from layerwise.datatype.torch import from_datatype, from_torch

__all__ = [
    "DataType", "DataTypeEntry", "from_datatype", "from_numpy", "from_onnx", "from_onnxrt", "from_tensorrt",
    "from_torch", "register_dtype_exporter", "register_dtype_importer",
]  # fmt: skip
