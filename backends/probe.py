"""What driver and engines themselves say, asked in a process of its own: native code may crash or hang there.

`probe()` starts `python -m` on this module; the child prints one JSON object per step, before and after it.
"""

import ctypes
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from layerwise._tool.backends.model.wire import put_bytes, put_int
from layerwise._tool.backends.older_python import running

SECONDS = 60.0
_CUDA = "CUDAExecutionProvider"
_CUDA_ERRORS = {
    3: "the driver is not initialised",
    34: "the driver is a stub: a real libcuda.so.1 is missing",
    100: "it finds no GPU",
    803: "driver and kernel module are of different versions: restart the machine",
    804: "this GPU does not take the compatibility driver that is installed",
    999: "unknown error: is the kernel module nvidia_uvm loaded?",
}
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR, cuda.h


class Gpu(Struct, frozen=True):
    """One GPU that the driver offers. memory: bytes; capability: compute capability, as in "9.0"."""

    name: str
    memory: int
    capability: str


class Probe(Struct, frozen=True):
    """What was found. An engine's error is "" where it could be imported.

    driver: what is wrong with the driver, "" where nothing is or there is none. onnxruntime, tensorrt: versions, ""
    where they cannot be imported. cuda: None where it was not tried, "" where a model ran on the GPU, else why not.
    lost: the step in which the process ended or hung, and how; "" if it got through.
    """

    driver: str = ""
    gpus: tuple[Gpu, ...] = ()
    onnxruntime: str = ""
    onnxruntime_error: str = ""
    providers: tuple[str, ...] = ()
    cuda: str | None = None
    tensorrt: str = ""
    tensorrt_error: str = ""
    lost: str = ""


def probe(seconds: float = SECONDS) -> Probe:
    """Ask, and give up when a step takes longer than `seconds`. Raises OSError if no process can be started."""
    quiet = {**os.environ, "ORT_DISABLE_TELEMETRY": os.environ.get("ORT_DISABLE_TELEMETRY", "1")}
    with subprocess.Popen(
        running(__name__), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=quiet
    ) as child:
        said, end = _answer(child, seconds)
    return _read(said.decode("utf-8", "replace").splitlines(), end)


def _answer(child: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, str]:
    """All that a process says, and how it ended; it is killed if it says nothing for so long after its first word."""
    assert child.stdout is not None
    said, limit = bytearray(), SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while selector.select(limit):
            data = os.read(child.stdout.fileno(), 1 << 16)
            if not data:
                return bytes(said), _ending(child.wait())
            said += data
            limit = seconds
    child.kill()
    return bytes(said), f"did not answer within {limit:g} s"


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}" if code else ""
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _read(lines: list[str], end: str) -> Probe:
    """The child's lines as one answer; libraries may print others among them."""
    found: dict[str, Any] = {}
    begun = "starting"
    for line in lines:
        try:
            step = json.loads(line)
        except ValueError:
            continue
        if isinstance(step, dict) and isinstance(step.get("begin"), str):
            begun = step["begin"]
        elif isinstance(step, dict) and isinstance(step.get("found"), dict):
            found.update(step["found"])
    gpus = tuple(Gpu(**gpu) for gpu in found.pop("gpus", []))
    providers = tuple(found.pop("providers", ()))
    return Probe(gpus=gpus, providers=providers, lost=f"{begun}: the process {end}" if end else "", **found)


# ── in the child ──


def _driver() -> dict[str, Any]:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return {}
    try:
        code = cuda.cuInit(0)
        if code:
            return {"driver": _CUDA_ERRORS.get(code, f"cuInit returns {code}")}
        count = ctypes.c_int()
        cuda.cuDeviceGetCount(ctypes.byref(count))
        return {"gpus": [_gpu(cuda, number) for number in range(count.value)]}
    except AttributeError as error:
        return {"driver": f"libcuda.so.1 is none of a driver: {error}"}


def _gpu(cuda: Any, number: int) -> dict[str, Any]:
    device, memory, name = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(200)
    cuda.cuDeviceGet(ctypes.byref(device), number)
    cuda.cuDeviceGetName(name, len(name), device)
    cuda.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    version = []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int()
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        version.append(str(value.value))
    return {"name": name.value.decode("utf-8", "replace"), "memory": memory.value, "capability": ".".join(version)}


def _onnxruntime() -> dict[str, Any]:
    try:
        onnxruntime = importlib.import_module("onnxruntime")
        return {"onnxruntime": str(onnxruntime.__version__), "providers": list(onnxruntime.get_available_providers())}
    except Exception as error:  # whatever a damaged installation raises
        return {"onnxruntime_error": _first_line(error)}


def _cuda_run() -> dict[str, Any]:
    """Run a model of one node on the first GPU."""
    try:
        import numpy as np

        onnxruntime = importlib.import_module("onnxruntime")
        onnxruntime.set_default_logger_severity(4)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        session = onnxruntime.InferenceSession(_doubling(), options, providers=[_CUDA])
        if _CUDA not in session.get_providers():
            return {"cuda": _library_error(onnxruntime)}
        (given,) = session.run(None, {"x": np.ones(4, np.float32)})
        return {"cuda": "" if given.tolist() == [2.0] * 4 else f"1 + 1 gives {given.tolist()}"}
    except Exception as error:
        return {"cuda": _first_line(error)}


def _library_error(onnxruntime: Any) -> str:
    from pathlib import Path

    try:
        ctypes.CDLL(str(Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"))
    except OSError as error:
        return str(error)
    return "its libraries are there, but it found no device to use"


def _doubling() -> bytes:
    """A model whose output is its input of four floats, added to itself."""

    def value(name: bytes) -> bytes:
        shape = put_bytes(2, put_bytes(1, put_int(1, 4)))
        return put_bytes(1, name) + put_bytes(2, put_bytes(1, put_int(1, 1) + shape))

    node = put_bytes(1, b"x") + put_bytes(1, b"x") + put_bytes(2, b"y") + put_bytes(4, b"Add")
    graph = put_bytes(1, node) + put_bytes(2, b"g") + put_bytes(11, value(b"x")) + put_bytes(12, value(b"y"))
    return put_int(1, 7) + put_bytes(7, graph) + put_bytes(8, put_int(2, 13))


def _tensorrt() -> dict[str, Any]:
    try:
        return {"tensorrt": str(importlib.import_module("tensorrt").__version__)}
    except Exception as error:
        return {"tensorrt_error": _first_line(error)}


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:500]


def _steps() -> None:
    driver = _step("the driver", _driver)
    engine = _step("onnxruntime", _onnxruntime)
    if driver.get("gpus") and _CUDA in engine.get("providers", ()):
        _step("a model on the GPU", _cuda_run)
    _step("TensorRT", _tensorrt)


def _step(name: str, function: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    _tell({"begin": name})
    found = function()
    _tell({"found": found})
    return found


def _tell(value: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    _steps()
