"""The metrics kernel run by the CPU, compiled by the machine's C++ compiler."""

import ctypes
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from numpy import zeros

from layerwise._tool.backends import cuda
from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.cuda.metrics import BOUNDS, RECORD, DevicePair, runs, table

SOURCE = Path(__file__).with_name("cuda_on_cpu.cpp")


def build(folder: Path) -> ctypes.CDLL | None:
    """The kernels as a library; None where there is no compiler that can make it."""
    compiler, library = shutil.which("g++") or shutil.which("clang++"), folder / "kernels.so"
    if compiler is None:
        return None
    kernels = Path(cuda.__file__).parent
    flags = ["-std=c++20", "-O0", "-shared", "-fPIC", "-ffp-contract=off", f"-I{kernels}"]
    done = subprocess.run([compiler, *flags, str(SOURCE), "-o", str(library)], capture_output=True, check=False)
    return ctypes.CDLL(str(library)) if done.returncode == 0 else None


class HostStream:
    """What `Stream` copies, at once, between host addresses."""

    def to_host(self, array: Array, address: int) -> None:
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def wait(self) -> None: ...


class MetricsOnCpu:
    """What `DeviceMetrics` does, over host addresses."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.stream = HostStream()

    def ready(self) -> None: ...

    def measure(self, pairs: Sequence[DevicePair]) -> Array:
        order = sorted(range(len(pairs)), key=lambda i: pairs[i].dtypes)
        ordered = [pairs[i] for i in order]
        rows, owners = table(ordered)
        parts, records, found = zeros(owners.size, RECORD), zeros(len(pairs), RECORD), zeros(len(pairs), RECORD)
        for run in runs(ordered, rows):
            self._call(f"compare_{run.types}", rows, owners, parts, run.blocks, run.first_block)
            self._call(f"finish_{run.types}", rows, parts, records, run.pairs * BOUNDS, run.first)
        found[order] = records
        return found

    def _call(self, name: str, *values: Array | int) -> None:
        run = getattr(self._library, f"run_{name}")
        run.restype = None
        run(*(ctypes.c_uint64(value if isinstance(value, int) else value.ctypes.data) for value in values))
