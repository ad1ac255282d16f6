"""torch's types."""

import sys
from typing import Any

from layerwise.datatype.datatype import DataType, register_dtype_exporter, register_dtype_importer
from layerwise.mod.importer import lazy_import

__all__ = ["from_datatype", "from_torch"]

torch = lazy_import("torch>=1.13.0")
_ENTRIES = {
    entry.name: entry
    for entry in (
        DataType.FLOAT64, DataType.FLOAT32, DataType.FLOAT16, DataType.INT16, DataType.INT32, DataType.INT64,
        DataType.INT8, DataType.UINT8, DataType.BOOL, DataType.BFLOAT16,
    )
}  # fmt: skip


@register_dtype_importer("torch")
def from_torch(torch_type: Any) -> Any:
    """The data type of torch's; None if there is none. Torch is not imported for it: who has its type has it."""
    if "torch" not in sys.modules or type(torch_type).__module__ != "torch":
        return None
    return _ENTRIES.get(str(torch_type).removeprefix("torch."))


@register_dtype_exporter("torch")
def from_datatype(self: Any) -> Any:
    """torch's type, None if it has none. MissingDependency without torch."""
    return getattr(torch, self.name) if self.name in _ENTRIES else None
