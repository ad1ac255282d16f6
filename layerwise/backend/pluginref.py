"""CPU references of common TensorRT plugins as a runner."""

from layerwise.backend.floor import FloorRunner


class PluginRefRunner(FloorRunner):
    """Runs a model that is made of known TensorRT plugins."""

    kind = "pluginref"
