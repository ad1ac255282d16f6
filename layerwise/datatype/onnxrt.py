"""onnxruntime's types: texts such as "tensor(float)"."""

from typing import Any

from layerwise.datatype.datatype import DataType, register_dtype_exporter, register_dtype_importer

__all__ = ["from_datatype", "from_onnxrt"]

_WORDS = {DataType.FLOAT64: "double", DataType.FLOAT32: "float"}
_TEXTS = {
    entry: f"tensor({_WORDS.get(entry, entry.name)})"
    for entry in DataType.__members__.values()
    if entry not in (DataType.FLOAT4, DataType.FLOAT8E8M0)
}
_ENTRIES = {text: entry for entry, text in _TEXTS.items()}


@register_dtype_importer("onnxruntime")
def from_onnxrt(onnxrt_type: Any) -> Any:
    """The data type of onnxruntime's text; None if there is none."""
    return _ENTRIES.get(onnxrt_type) if isinstance(onnxrt_type, str) else None


@register_dtype_exporter("onnxruntime")
def from_datatype(self: Any) -> Any:
    """onnxruntime's text, None if it has none."""
    return _TEXTS.get(self)
