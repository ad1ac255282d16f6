"""TensorRT, or TensorRT for RTX in its place, imported when it is used."""

from typing import Any

from layerwise import config
from layerwise.mod.importer import lazy_import

__all__ = ["lazy_import_trt", "tensorrt_module_and_version_string"]


def tensorrt_module_and_version_string() -> str:
    """What is imported as TensorRT, with the version that is needed."""
    return "tensorrt_rtx>=1.0" if config.USE_TENSORRT_RTX else "tensorrt>=8.5"


def lazy_import_trt() -> Any:
    """The module, imported on first use."""
    return lazy_import(tensorrt_module_and_version_string())
