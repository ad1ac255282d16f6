"""Errors, under the names that scripts written for Polygraphy catch."""

from layerwise.exception.exception import (
    BadFile,
    DataTypeConversionException,
    LayerwiseError,
    MissingDependency,
    MissingFile,
    PolygraphyException,
    PolygraphyInternalException,
    UsageError,
)

__all__ = [
    "BadFile", "DataTypeConversionException", "LayerwiseError", "MissingDependency", "MissingFile",
    "PolygraphyException", "PolygraphyInternalException", "UsageError",
]  # fmt: skip
