"""Loaders that belong to no backend."""

from layerwise.backend.common.loader import (
    BytesFromPath,
    InvokeFromScript,
    SaveBytes,
    bytes_from_path,
    invoke_from_script,
    save_bytes,
)

__all__ = ["BytesFromPath", "InvokeFromScript", "SaveBytes", "bytes_from_path", "invoke_from_script", "save_bytes"]
