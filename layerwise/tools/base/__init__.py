"""The base of command-line tools."""

from layerwise.tools.base.tool import Tool

__all__ = ["Tool"]
