"""The public Python API of Layerwise: modules at Polygraphy's paths, so that a script carries over."""

from layerwise._tool import VERSION as __version__

__all__ = ["__version__"]


def __getattr__(name: str) -> object:
    """Modules of Polygraphy's that `import polygraphy` alone makes attributes; here they are imported on first use."""
    if name not in ("config", "constants", "exception", "func", "logger", "mod", "util"):
        raise AttributeError(f"module 'layerwise' has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"layerwise.{name}")
