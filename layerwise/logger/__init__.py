"""The log of the Python API: `G_LOGGER`, with Polygraphy's levels and methods."""

from layerwise.logger.logger import G_LOGGER, LogMode

__all__ = ["G_LOGGER", "LogMode"]
