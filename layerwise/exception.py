"""Errors, under the names that scripts written for Polygraphy catch."""

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency, UsageError

PolygraphyException = LayerwiseError

__all__ = ["BadFile", "LayerwiseError", "MissingDependency", "PolygraphyException", "UsageError"]
