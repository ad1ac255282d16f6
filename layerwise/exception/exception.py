"""Errors, under the names that scripts written for Polygraphy catch."""

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency, UsageError

PolygraphyException = LayerwiseError


class PolygraphyInternalException(Exception):
    """Something that should never happen; raised only with config.INTERNAL_CORRECTNESS_CHECKS."""


class MissingFile(BadFile, FileNotFoundError):
    """There is no file at a path that is to be read; what Polygraphy's scripts catch as Python's own error."""


class DataTypeConversionException(LayerwiseError):
    """A data type has no counterpart in another module."""


__all__ = [
    "BadFile", "DataTypeConversionException", "LayerwiseError", "MissingDependency", "MissingFile",
    "PolygraphyException", "PolygraphyInternalException", "UsageError",
]  # fmt: skip
