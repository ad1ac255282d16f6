"""The versions of what computes: onnx, onnxruntime, numpy, TensorRT and Layerwise, without importing them."""

import os
import sys
import time
from contextlib import suppress
from functools import cache

_IMPORTED = ("onnx", "onnxruntime", "numpy", "tensorrt")
_PACKAGES = ("onnx", "numpy", "tensorrt", "layerwise")  # and distributions whose names begin so
_INFO = ".dist-info"


@cache
def versions() -> dict[str, str]:
    """Return version and time of installation by the name of the distribution, of every folder that is imported from.

    A build of the same version that is installed over another has another time. Names of folders are read, since
    importlib.metadata takes 50 ms to import.
    """
    found: dict[str, str] = {}
    missing = list(_IMPORTED)
    for folder in dict.fromkeys(sys.path):
        here = [name for name in _IMPORTED if os.path.isdir(os.path.join(folder, name))]  # noqa: PTH112, PTH118
        if not here:
            continue
        infos = _distributions(folder)
        for name in (name for name in here if name in missing):
            missing.remove(name)
            if not any(info == name or info.startswith(f"{name}_") for info in infos):
                infos[name] = f"? of {_time(os.path.join(folder, name))}"  # noqa: PTH118
        found = {**infos, **found}
    return found


def _distributions(folder: str) -> dict[str, str]:
    found = {}
    with suppress(OSError):
        for entry in os.listdir(folder or "."):  # noqa: PTH208 (a Path for each takes 1 ms)
            if entry.startswith(_PACKAGES) and entry.endswith(_INFO):
                name, _, version = entry.removesuffix(_INFO).partition("-")
                found[name] = f"{version} of {_time(os.path.join(folder, entry))}"  # noqa: PTH118
    return found


def _time(folder: str) -> str:
    """When a folder's files were last replaced, in UTC."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(os.stat(folder).st_mtime))  # noqa: PTH116
    except OSError:
        return "?"
