"""The comparison kernels for one pair of types: compiled by NVRTC, loaded, launched."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.cuda.devices import Stream
from layerwise._tool.backends.cuda.library import architecture, check_driver, driver, nvrtc, use_device
from layerwise._tool.backends.errors import LayerwiseError

THREADS = 256  # as in elements.cu
PARTS = ("elements.cu", "walk.cu", "metrics.cu")
_TYPES = {"float32": "float", "float16": "Half", "bfloat16": "Brain"}  # names as in elements.cu


class Program:
    """Kernels by name, on one device."""

    def __init__(self, cubin: bytes) -> None:
        self._cubin = np.frombuffer(cubin, np.uint8)
        module = driver().cuModuleLoadData(self._cubin.ctypes.data)
        self._module = check_driver(module, "the metrics kernel cannot be loaded")
        self._kernels: dict[str, Any] = {}

    def launch(self, name: str, blocks: int, stream: Stream, *values: int) -> None:
        """Enqueue kernel `name` with its arguments, all 64-bit: device addresses and numbers."""
        held = np.array(values, np.uint64)
        arguments = np.array([held.ctypes.data + 8 * i for i in range(len(held))], np.uint64)
        answer = driver().cuLaunchKernel(
            self._kernel(name), blocks, 1, 1, THREADS, 1, 1, 0, int(stream.handle), arguments.ctypes.data, 0
        )
        check_driver(answer, f"kernel {name} cannot be launched")

    def _kernel(self, name: str) -> Any:
        if name not in self._kernels:
            answer = driver().cuModuleGetFunction(self._module, name.encode())
            self._kernels[name] = check_driver(answer, f"there is no kernel {name}")
        return self._kernels[name]


@cache
def program(device: int, types: str) -> Program:
    """Return the kernels for a pair of types (`float32_float16`) on a device, compiled once per process."""
    use_device(device)
    return Program(compiled(architecture(device), types))


def compiled(target: str, types: str) -> bytes:
    """Return the machine code for a pair of types and an architecture (`sm_90`); needs no GPU.

    LayerwiseError with the compiler's log if it fails.
    """
    compiler = nvrtc()
    error, made = compiler.nvrtcCreateProgram(source(), b"metrics.cu", 0, [], [])
    _require(error, "NVRTC cannot begin")
    first, second = (_TYPES[name] for name in types.split("_"))
    defined = {"TYPES": types, "FIRST_TYPE": first, "SECOND_TYPE": second}
    given = [f"--gpu-architecture={target}", "--std=c++17", *(f"-D{name}={value}" for name, value in defined.items())]
    options = [option.encode() for option in given]
    (error,) = compiler.nvrtcCompileProgram(made, len(options), options)
    if int(error) != 0:
        raise LayerwiseError(f"NVRTC cannot compile the metrics kernel for {target}: {_log(made)}")
    error, size = compiler.nvrtcGetCUBINSize(made)
    _require(error, "NVRTC gives no machine code")
    code = b" " * int(size)
    (error,) = compiler.nvrtcGetCUBIN(made, code)
    _require(error, "NVRTC gives no machine code")
    compiler.nvrtcDestroyProgram(made)
    return code


def source() -> bytes:
    """Return the kernels' source, concatenated in order."""
    return b"".join(Path(__file__).with_name(part).read_bytes() for part in PARTS)


def _log(made: Any) -> str:
    _, size = nvrtc().nvrtcGetProgramLogSize(made)
    log = b" " * int(size)
    nvrtc().nvrtcGetProgramLog(made, log)
    return log.decode(errors="replace").strip("\0 \n")


def _require(error: Any, what: str) -> None:
    if int(error) != 0:
        raise LayerwiseError(f"{what}: {error.name}")
