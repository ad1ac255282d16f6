"""Errors, under the names that scripts written for Polygraphy catch."""

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency, UsageError

PolygraphyException = LayerwiseError


class PolygraphyInternalException(Exception):
    """Something that should never happen; raised only with config.INTERNAL_CORRECTNESS_CHECKS."""


class DataTypeConversionException(LayerwiseError):
    """A data type has no counterpart in another module."""


__all__ = [
    "BadFile", "DataTypeConversionException", "LayerwiseError", "MissingDependency", "PolygraphyException",
    "PolygraphyInternalException", "UsageError",
]  # fmt: skip
