"""The public Python API of Layerwise: modules at Polygraphy's paths, so that a script carries over."""

from layerwise._tool import VERSION as __version__

__all__ = ["__version__"]
