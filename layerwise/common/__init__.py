"""Names, types and shapes of tensors."""

from layerwise.common.struct import BoundedShape, FormattedArray, MetadataTuple, TensorMetadata
from layerwise.exception import DataTypeConversionException, PolygraphyException, PolygraphyInternalException

__all__ = [
    "BoundedShape", "DataTypeConversionException", "FormattedArray", "MetadataTuple", "PolygraphyException",
    "PolygraphyInternalException", "TensorMetadata",
]  # fmt: skip
