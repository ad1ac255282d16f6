"""ONNX's types: numbers of TensorProto.DataType."""

from typing import Any

from layerwise._tool.backends.tensors import to_onnx
from layerwise._tool.backends.type_names import TYPE_NAMES
from layerwise.datatype.datatype import DataType, register_dtype_exporter, register_dtype_importer
from layerwise.datatype.numpy import floor_name

__all__ = ["from_datatype", "from_onnx"]

_ENTRIES = {floor_name(entry): entry for entry in DataType.__members__.values()}


@register_dtype_importer("onnx")
def from_onnx(onnx_type: Any) -> Any:
    """The data type of a TensorProto.DataType number; None if there is none."""
    return _ENTRIES.get(TYPE_NAMES.get(onnx_type, "")) if isinstance(onnx_type, int) else None


@register_dtype_exporter("onnx")
def from_datatype(self: Any) -> Any:
    """The TensorProto.DataType number."""
    return to_onnx(floor_name(self))
