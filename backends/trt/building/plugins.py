"""Loads plugin libraries, and TensorRT's own plugins."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.text import shown


def load_plugins(trt: Any, logger: Any, libraries: Sequence[str]) -> None:
    """Register TensorRT's own plugins and those of these libraries. BadFile for a library that cannot be loaded."""
    for library in libraries:
        if not Path(library).is_file():
            raise BadFile(library, "there is no such library of plugins")
        try:
            ctypes.CDLL(str(Path(library).absolute()), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise BadFile(library, f"cannot be loaded: {shown(str(error), 300)}") from None
    trt.init_libnvinfer_plugins(logger, "")
