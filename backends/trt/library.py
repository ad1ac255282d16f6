"""Loads TensorRT's and CUDA's Python modules and plugin libraries, or says what to install."""

import ctypes
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency
from layerwise._tool.backends.installed import driver_cuda, install_line, require
from layerwise._tool.backends.wording import in_words


def tensorrt() -> Any:
    """Return the module. MissingDependency says how to install it and which version fits the driver."""
    try:
        return importlib.import_module("tensorrt")
    except ImportError as error:
        raise MissingDependency(f"TensorRT cannot be imported ({error}). {advice()}") from None


def cudart() -> Any:
    """Return cuda-python's runtime module. MissingDependency if it is not installed."""
    return require("cuda", "a GPU", "bindings.runtime")


def advice() -> str:
    """Return how to install TensorRT here, by the newest CUDA version that the driver supports."""
    newest, install = driver_cuda(), install_line("tensorrt")
    if newest is None:
        return f"Install it with {install}; it needs an NVIDIA GPU, and no NVIDIA driver was found here."
    major, minor = newest
    told = f"The driver here knows CUDA up to {major}.{minor}"
    if major >= 13:
        return f"Install it with {install}. {told}: TensorRT 11 (tensorrt-cu13) and 10 (tensorrt-cu12) fit."
    if major == 12:
        return f"{told}: TensorRT 10 for CUDA 12 fits: {install} 'tensorrt-cu12>=10,<11'."
    return f"{told}, too old for TensorRT 10 and 11: update the driver to one for CUDA 12 or 13, then {install}."


def check(answer: Any, what: str) -> Any:
    """Return the value of a cudart result (error, value…). LayerwiseError naming `what` and the error if it failed."""
    error, *values = answer
    if int(error) != 0:
        cuda = cudart()
        name, text = (cuda.cudaGetErrorName(error)[1], cuda.cudaGetErrorString(error)[1])
        raise LayerwiseError(f"{what}: {name.decode()} ({text.decode()})")
    return values[0] if len(values) == 1 else tuple(values)


def load_plugins(trt: Any, logger: Any, libraries: Sequence[str]) -> None:
    """Register TensorRT's own plugins and those of these libraries. BadFile for a library that cannot be loaded.

    A name that is not a file here is looked for where libraries are.
    """
    for library in libraries:
        is_file = Path(library).is_file()
        if not is_file and Path(library).name != library:
            raise BadFile(library, "there is no such library of plugins")
        try:
            ctypes.CDLL(str(Path(library).absolute()) if is_file else library, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise BadFile(library, f"cannot be loaded: {in_words(error)}") from None
    trt.init_libnvinfer_plugins(logger, "")
