"""CPU references of common TensorRT plugins as a runner."""

from layerwise.backend.pluginref.runner import PluginRefRunner

__all__ = ["PluginRefRunner"]
