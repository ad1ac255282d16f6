"""Import the real bindings over their stubs, in this process (one version a process)."""

import ctypes
import os
import sys
from types import ModuleType


def environment(folder: str, libraries: list[str]) -> dict[str, str]:
    """What `bindings` reads: the folder of the bindings, the libraries to load first."""
    return {"LAYERWISE_STUB_BINDINGS": folder, "LAYERWISE_STUB_LIBRARIES": os.pathsep.join(libraries)}


def bindings() -> ModuleType:
    """The real `tensorrt_bindings`, from where the environment says."""
    ctypes.CDLL("libstdc++.so.6", mode=ctypes.RTLD_GLOBAL)
    for library in os.environ["LAYERWISE_STUB_LIBRARIES"].split(os.pathsep):
        ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
    sys.path.append(os.environ["LAYERWISE_STUB_BINDINGS"])
    import tensorrt_bindings

    return tensorrt_bindings
