"""The tensors inside an engine as it runs: those marked for debugging, and those that no fusion swallowed."""

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.tensors import packed_nbytes
from layerwise._tool.backends.trt.inference.engine import NUMPY_NAMES
from layerwise._tool.backends.trt.inference.memory import host_form
from layerwise._tool.backends.trt.inference.runner import TrtRunner
from layerwise._tool.backends.trt.library import check, cudart, tensorrt

Take = Callable[[str, Array], None]


def run_watched(runner: TrtRunner, feed: Mapping[str, Array], take: Take) -> IterationResult:
    """Run once, as `TrtRunner.infer`; `take` is given each debug tensor as it is made, by TensorRT's name of it.

    The engine must have been built with debug tensors: others give none. What `take` raises comes out of here.
    """
    trt, context = tensorrt(), runner.execution.context
    heard = _Heard(take)
    listener = make_listener(trt, heard)
    context.set_debug_listener(listener)
    context.set_all_tensors_debug_state(True)
    context.unfused_tensors_debug_state = True
    result = runner.infer(feed)
    context.set_all_tensors_debug_state(False)
    context.unfused_tensors_debug_state = False
    if heard.error is not None:
        raise heard.error
    return result


class _Heard:
    """What a listener passes on. error: an exception must not pass through TensorRT."""

    def __init__(self, take: Take) -> None:
        self._take = take
        self.error: Exception | None = None

    def hear(self, address: int, host: bool, dtype: str, shape: tuple[int, ...], name: str, stream: int) -> None:
        if self.error is not None:
            return
        try:
            data = np.empty(packed_nbytes(dtype, shape), np.uint8)
            if host:
                ctypes.memmove(data.ctypes.data, address, data.nbytes)
            else:
                _from_device(data, address, stream)
            self._take(name, host_form(data, dtype, shape))
        except Exception as error:
            self.error = error


def _from_device(data: Array, address: int, stream: int) -> None:
    """On the run's own stream: the tensor is there, and stays, while the listener is called."""
    cuda = cudart()
    kind = cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost
    if data.nbytes:
        check(cuda.cudaMemcpyAsync(data.ctypes.data, address, data.nbytes, kind, stream), "a debug tensor")
    check(cuda.cudaStreamSynchronize(stream), "a debug tensor")


def make_listener(trt: Any, heard: _Heard) -> Any:
    """An IDebugListener that tells `heard`. Keep it as long as the context."""

    class Listener(trt.IDebugListener):  # type: ignore[misc]
        def process_debug_tensor(self, addr: Any, location: Any, type: Any, shape: Any, name: str, stream: int) -> None:
            host = location == trt.TensorLocation.HOST
            heard.hear(_pointer(addr), host, NUMPY_NAMES[type.name], tuple(shape), str(name), int(stream))

    return Listener()


def _pointer(address: Any) -> int:
    """The bindings give a `void const*`, which Python sees as a capsule without a name."""
    if isinstance(address, int):
        return address
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(address, None) or 0)
