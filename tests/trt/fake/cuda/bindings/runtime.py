"""cuda.bindings.runtime: the calls that Layerwise makes, each answering (error, …) as the real ones do."""

import ctypes
from enum import IntEnum
from typing import Any

from cuda import _host

cudaHostAllocDefault = 0
cudaStreamDefault = 0
cudaStreamNonBlocking = 1
cudaEventDefault = 0
cudaEventBlockingSync = 1
cudaEventDisableTiming = 2


class cudaError_t(IntEnum):
    """The errors that the fake can give."""

    cudaSuccess = 0
    cudaErrorInvalidValue = 1
    cudaErrorMemoryAllocation = 2
    cudaErrorInvalidDevice = 101
    cudaErrorInvalidResourceHandle = 400
    cudaErrorNotReady = 600
    cudaErrorStreamCaptureUnsupported = 900


class cudaMemcpyKind(IntEnum):
    """Directions of a copy."""

    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3
    cudaMemcpyDefault = 4


class cudaStreamCaptureMode(IntEnum):
    """How strict a capture is."""

    cudaStreamCaptureModeGlobal = 0
    cudaStreamCaptureModeThreadLocal = 1
    cudaStreamCaptureModeRelaxed = 2


class cudaDeviceAttr(IntEnum):
    """The attributes that are asked for."""

    cudaDevAttrMultiProcessorCount = 16
    cudaDevAttrComputeCapabilityMajor = 75
    cudaDevAttrComputeCapabilityMinor = 76


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
    return _OK, 13000


def cudaDriverGetVersion() -> Any:
    return _OK, 13000


def cudaGetErrorName(error: Any) -> Any:
    return _OK, cudaError_t(error).name.encode()


def cudaGetErrorString(error: Any) -> Any:
    return _OK, cudaError_t(error).name.removeprefix("cudaError").encode()


def cudaGetLastError() -> Any:
    return (_OK,)


def cudaDeviceSynchronize() -> Any:
    return (_OK,)


def cudaMemGetInfo() -> Any:
    return _OK, _host.limit() - _host.memory.used, _host.limit()


def cudaMalloc(size: int) -> Any:
    address = _host.allocate(size)
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


def cudaMemcpy(dst: Any, src: Any, count: int, kind: cudaMemcpyKind) -> Any:
    if not isinstance(kind, cudaMemcpyKind):
        raise TypeError(f"Argument 'kind' is not instance of type cudaMemcpyKind, found {type(kind)}")
    ctypes.memmove(_address(dst), _address(src), count)
    return (_OK,)


def cudaMemcpyAsync(dst: Any, src: Any, count: int, kind: cudaMemcpyKind, stream: Any) -> Any:
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


def cudaStreamWaitEvent(stream: Any, event: Any, flags: int) -> Any:
    return (_OK,)


def cudaStreamBeginCapture(stream: Any, mode: cudaStreamCaptureMode) -> Any:
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
