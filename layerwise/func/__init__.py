"""Extending a loader with a function of one's own."""

from layerwise.func.func import constantmethod, extend

__all__ = ["constantmethod", "extend"]
