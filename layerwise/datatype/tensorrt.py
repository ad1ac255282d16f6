"""TensorRT's types: members of trt.DataType."""

from typing import Any

from layerwise.datatype.datatype import DataType, register_dtype_exporter, register_dtype_importer
from layerwise.mod.trt_importer import lazy_import_trt

__all__ = ["from_datatype", "from_tensorrt"]

trt = lazy_import_trt()
_NAMES = {
    DataType.FLOAT32: "FLOAT", DataType.FLOAT16: "HALF", DataType.INT32: "INT32", DataType.INT8: "INT8",
    DataType.INT64: "INT64", DataType.UINT8: "UINT8", DataType.BOOL: "BOOL", DataType.BFLOAT16: "BF16",
    DataType.FLOAT8E4M3FN: "FP8", DataType.INT4: "INT4", DataType.FLOAT4: "FP4", DataType.FLOAT8E8M0: "E8M0",
}  # fmt: skip


def _is_there() -> bool:
    return bool(trt.is_installed()) and bool(trt.is_importable())


@register_dtype_importer("tensorrt")
def from_tensorrt(tensorrt_type: Any) -> Any:
    """The data type of TensorRT's; None if there is none, or no TensorRT."""
    if not _is_there() or not isinstance(tensorrt_type, trt.DataType):
        return None
    return next((entry for entry, name in _NAMES.items() if name == tensorrt_type.name), None)


@register_dtype_exporter("tensorrt")
def from_datatype(self: Any) -> Any:
    """TensorRT's type, None if this version has none. MissingDependency without TensorRT."""
    return getattr(trt.DataType, _NAMES[self], None) if self in _NAMES else None
