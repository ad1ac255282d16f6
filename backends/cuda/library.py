"""cuda-python's driver and compiler modules, and selecting the current device."""

import ctypes
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from layerwise._tool.backends.errors import LayerwiseError, MissingDependency
from layerwise._tool.backends.installed import pip, require
from layerwise._tool.backends.trt.library import check, cudart


def driver() -> Any:
    """Return cuda-python's driver module. MissingDependency if it is not installed."""
    return _module("driver")


def nvrtc() -> Any:
    """Return cuda-python's runtime compiler module. MissingDependency if it, or the compiler, is not installed."""
    module = _module("nvrtc")
    _load_from_path("libnvrtc.so.*")
    try:
        module.nvrtcVersion()
    except RuntimeError as error:
        reason = f"NVRTC cannot be loaded ({' '.join(str(error).split())})"
        raise MissingDependency(f"{reason}; install it: {pip('install', 'nvidia-cuda-nvrtc')}") from None
    return module


@cache
def _load_from_path(pattern: str) -> None:
    """Load NVIDIA's wheels from any folder of `sys.path`, also PYTHONPATH's, where cuda-python does not search."""
    for folder in filter(None, sys.path):
        for library in sorted(Path(folder).glob(f"nvidia/*/lib/{pattern}")):
            with suppress(OSError):
                ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)
                return


def _module(name: str) -> Any:
    return require("cuda", "a GPU", f"bindings.{name}")


def use_device(number: int = 0) -> None:
    """Make a device current on this thread. LayerwiseError if there is no such device, or no driver."""
    cuda = cudart()
    try:
        check(cuda.cudaSetDevice(number), f"GPU {number} cannot be used")
        check(cuda.cudaFree(0), f"GPU {number} cannot be used")
    except RuntimeError as error:  # how cuda-python reports that the driver's library is missing
        raise LayerwiseError(f"GPU {number} cannot be used: {error}") from None


def free_memory() -> int:
    """Return the bytes of the current device's memory that are free. LayerwiseError if it does not tell."""
    free, _ = check(cudart().cudaMemGetInfo(), "the GPU does not tell its free memory")
    return int(free)


def architecture(number: int = 0) -> str:
    """Return the device's architecture as the compiler names it: `sm_90`."""
    cuda = cudart()
    kinds = cuda.cudaDeviceAttr
    major, minor = (
        check(cuda.cudaDeviceGetAttribute(kind, number), "the GPU does not say its architecture")
        for kind in (kinds.cudaDevAttrComputeCapabilityMajor, kinds.cudaDevAttrComputeCapabilityMinor)
    )
    return f"sm_{major}{minor}"


def check_driver(answer: Any, what: str) -> Any:
    """Return the value of a driver call's result; LayerwiseError naming `what` and the error if it failed."""
    error, *values = answer
    if int(error) != 0:
        raise LayerwiseError(f"{what}: {error.name}")
    return values[0] if values else None
