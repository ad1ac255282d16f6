"""The public Python API of Layerwise: modules at the paths of Polygraphy's, so that a script carries over by its imports."""

__version__ = "0.1.0"
