"""The public Python API of Layerwise: modules at Polygraphy's paths, so that a script carries over."""

__version__ = "0.1.0"
