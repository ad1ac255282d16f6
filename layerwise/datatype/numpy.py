"""numpy's types, with those of ml_dtypes that numpy itself lacks."""

from typing import Any

import numpy as np

from layerwise._tool.backends.tensors import dtype_name, to_numpy
from layerwise.datatype.datatype import DataType, DataTypeEntry, register_dtype_exporter, register_dtype_importer

__all__ = ["floor_name", "from_datatype", "from_numpy"]

_FLOOR_NAMES = {
    DataType.FLOAT4: "float4_e2m1fn", DataType.FLOAT8E4M3FN: "float8_e4m3fn",
    DataType.FLOAT8E4M3FNUZ: "float8_e4m3fnuz", DataType.FLOAT8E5M2: "float8_e5m2",
    DataType.FLOAT8E5M2FNUZ: "float8_e5m2fnuz", DataType.FLOAT8E8M0: "float8_e8m0fnu",
}  # fmt: skip
_BY_NAME = {_FLOOR_NAMES.get(entry, entry.name): entry for entry in DataType.__members__.values()}


def floor_name(dtype: Any) -> str:
    """The name that the floors below have for a data type, or for one of numpy's that is none of ours."""
    return _FLOOR_NAMES.get(dtype, dtype.name) if isinstance(dtype, DataTypeEntry) else dtype_name(np.dtype(dtype))


@register_dtype_importer("numpy")
def from_numpy(numpy_type: Any) -> Any:
    """The data type of a numpy type, or of what numpy takes for one; None if there is none."""
    try:
        dtype = np.dtype(numpy_type)
    except TypeError:
        return None
    return None if dtype == np.dtype(object) else _BY_NAME.get(dtype_name(dtype))


@register_dtype_exporter("numpy")
def from_datatype(self: Any) -> Any:
    """numpy's type, one of ml_dtypes where numpy itself has none."""
    return np.dtype(np.str_) if self is DataType.STRING else to_numpy(floor_name(self))
