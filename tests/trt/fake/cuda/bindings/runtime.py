"""cuda.bindings.runtime: the calls that Layerwise makes, each answering (error, …) as the real ones do."""

import ctypes
import json
from enum import IntEnum
from pathlib import Path
from typing import Any

from cuda import _host

_RECORDED = json.loads((Path(__file__).resolve().parents[3] / "recorded" / "cuda_runtime.json").read_text("utf-8"))
globals().update({name: IntEnum(name, members) for name, members in _RECORDED["enums"].items()})
globals().update(_RECORDED["numbers"])
cudaError_t: Any = globals()["cudaError_t"]
_TEXTS = {"cudaSuccess": b"no error", "cudaErrorMemoryAllocation": b"out of memory"}


class _Handle:
    def __init__(self, init_value: int = 0) -> None:
        self._handle = int(init_value)

    def __int__(self) -> int:
        return self._handle

    def getPtr(self) -> int:
        return self._handle


class cudaStream_t(_Handle):
    """A stream's handle."""


class cudaEvent_t(_Handle):
    """An event's handle."""

    time: float | None = None


class cudaGraph_t(_Handle):
    """A captured graph."""

    work: list[Any]


class cudaGraphExec_t(_Handle):
    """A graph that can be launched."""

    work: list[Any]


class cudaPointerAttributes:
    """Where an address lies."""

    type: Any = None
    device = 0
    devicePointer = 0
    hostPointer = 0


class cudaDeviceProp:
    """A pretended H200."""

    name = b"Fake device"
    major, minor = 9, 0
    multiProcessorCount = 132
    totalGlobalMem = 16 << 30


_OK = cudaError_t.cudaSuccess
_events: dict[int, cudaEvent_t] = {}


def cudaGetDeviceCount() -> Any:
    return _OK, 1


def cudaGetDevice() -> Any:
    return _OK, 0


def cudaSetDevice(device: int) -> Any:
    return (_OK if device == 0 else cudaError_t.cudaErrorInvalidDevice,)


def cudaGetDeviceProperties(device: int) -> Any:
    return (_OK, cudaDeviceProp()) if device == 0 else (cudaError_t.cudaErrorInvalidDevice, None)


def cudaDeviceGetAttribute(attr: Any, device: int) -> Any:
    return _OK, {16: 132, 75: 9, 76: 0}[int(attr)]


def cudaRuntimeGetVersion() -> Any:
    return _OK, 13050


def cudaDriverGetVersion() -> Any:
    return _OK, 13000


def cudaGetErrorName(error: Any) -> Any:
    return _OK, cudaError_t(error).name.encode()


def cudaGetErrorString(error: Any) -> Any:
    name = cudaError_t(error).name
    return _OK, _TEXTS.get(name, name.encode())


def cudaGetLastError() -> Any:
    return (_OK,)


def cudaDeviceSynchronize() -> Any:
    return (_OK,)


def cudaMemGetInfo() -> Any:
    return _OK, _host.limit() - _host.memory.used, _host.limit()


def cudaMalloc(size: int) -> Any:
    if not hasattr(type(size), "__index__"):
        raise TypeError("an integer is required")
    if size < 0:
        raise OverflowError("can't convert negative value to size_t")
    address = _host.allocate(int(size))
    return (_OK, address) if address else (cudaError_t.cudaErrorMemoryAllocation, None)


def cudaMallocAsync(size: int, hStream: Any) -> Any:
    return cudaMalloc(size)


def cudaFree(devPtr: Any) -> Any:
    return (_OK if not int(devPtr) or _host.release(int(devPtr)) else cudaError_t.cudaErrorInvalidValue,)


def cudaFreeAsync(devPtr: Any, hStream: Any) -> Any:
    return cudaFree(devPtr)


def cudaMallocHost(size: int) -> Any:
    return _OK, _host.allocate(size, counted=False)


def cudaHostAlloc(size: int, flags: int) -> Any:
    return cudaMallocHost(size)


def cudaFreeHost(ptr: Any) -> Any:
    return cudaFree(ptr)


def _address(pointer: Any) -> int:
    """Integers and handles as they are; of a buffer, its address."""
    try:
        return int(pointer)
    except (TypeError, ValueError):
        return ctypes.addressof(ctypes.c_char.from_buffer(pointer))


def cudaMemcpy(dst: Any, src: Any, count: int, kind: Any) -> Any:
    globals()["cudaMemcpyKind"](kind)
    ctypes.memmove(_address(dst), _address(src), count)
    return (_OK,)


def cudaMemcpyAsync(dst: Any, src: Any, count: int, kind: Any, stream: Any) -> Any:
    _host.submit(int(stream), lambda: cudaMemcpy(dst, src, count, kind))
    return (_OK,)


def cudaMemset(devPtr: Any, value: int, count: int) -> Any:
    ctypes.memset(_address(devPtr), value, count)
    return (_OK,)


def cudaMemsetAsync(devPtr: Any, value: int, count: int, stream: Any) -> Any:
    _host.submit(int(stream), lambda: cudaMemset(devPtr, value, count))
    return (_OK,)


def cudaStreamCreate() -> Any:
    made = _host.Stream()
    _host.streams[made.handle] = made
    return _OK, cudaStream_t(made.handle)


def cudaStreamCreateWithFlags(flags: int) -> Any:
    return cudaStreamCreate()


def cudaStreamDestroy(stream: Any) -> Any:
    known = int(stream) > 2 and _host.streams.pop(int(stream), None)
    return (_OK if known else cudaError_t.cudaErrorInvalidResourceHandle,)


def cudaStreamSynchronize(stream: Any) -> Any:
    found = _host.streams.get(int(stream))
    if found is None:
        return (cudaError_t.cudaErrorInvalidResourceHandle,)
    return (_OK if found.captured is None else cudaError_t.cudaErrorStreamCaptureUnsupported,)


def cudaStreamQuery(stream: Any) -> Any:
    return cudaStreamSynchronize(stream)


def cudaStreamIsCapturing(stream: Any) -> Any:
    status: Any = globals()["cudaStreamCaptureStatus"]
    active = _host.streams[int(stream)].captured is not None
    return _OK, status.cudaStreamCaptureStatusActive if active else status.cudaStreamCaptureStatusNone


def cudaPointerGetAttributes(ptr: Any) -> Any:
    kinds: Any = globals()["cudaMemoryType"]
    found = cudaPointerAttributes()
    found.devicePointer = found.hostPointer = int(ptr)
    ours = int(ptr) in _host.memory.blocks
    found.type = kinds.cudaMemoryTypeDevice if ours else kinds.cudaMemoryTypeUnregistered
    return _OK, found


def cudaStreamWaitEvent(stream: Any, event: Any, flags: int) -> Any:
    return (_OK,)


def cudaStreamBeginCapture(stream: Any, mode: Any) -> Any:
    _host.streams[int(stream)].captured = []
    return (_OK,)


def cudaStreamEndCapture(stream: Any) -> Any:
    found = _host.streams[int(stream)]
    graph = cudaGraph_t(next(_host._handles))
    graph.work, found.captured = found.captured or [], None
    return _OK, graph


def cudaGraphInstantiate(graph: cudaGraph_t, flags: int) -> Any:
    made = cudaGraphExec_t(next(_host._handles))
    made.work = graph.work
    return _OK, made


def cudaGraphLaunch(graphExec: cudaGraphExec_t, stream: Any) -> Any:
    for work in graphExec.work:
        _host.submit(int(stream), work)
    return (_OK,)


def cudaGraphDestroy(graph: Any) -> Any:
    return (_OK,)


def cudaGraphExecDestroy(graphExec: Any) -> Any:
    return (_OK,)


def cudaEventCreate() -> Any:
    made = cudaEvent_t(next(_host._handles))
    _events[int(made)] = made
    return _OK, made


def cudaEventCreateWithFlags(flags: int) -> Any:
    return cudaEventCreate()


def cudaEventRecord(event: Any, stream: Any) -> Any:
    def stamp() -> None:
        _events[int(event)].time = _host.now()

    _host.submit(int(stream), stamp)
    return (_OK,)


def cudaEventSynchronize(event: Any) -> Any:
    return (_OK,)


def cudaEventQuery(event: Any) -> Any:
    return (_OK,)


def cudaEventElapsedTime(start: Any, end: Any) -> Any:
    first, last = _events[int(start)].time, _events[int(end)].time
    if first is None or last is None:
        return cudaError_t.cudaErrorInvalidResourceHandle, None
    return _OK, last - first


def cudaEventDestroy(event: Any) -> Any:
    return (_OK if _events.pop(int(event), None) else cudaError_t.cudaErrorInvalidResourceHandle,)
