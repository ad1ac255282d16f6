"""What loaders and runners share."""

from layerwise.backend.base.loader import BaseLoader, Lazy, immediate, value_of
from layerwise.backend.base.runner import BaseRunner

__all__ = ["BaseLoader", "BaseRunner", "Lazy", "immediate", "value_of"]
