"""Device memory that only grows, copies on one stream, and runs as CUDA graphs: enqueued once, launched as one."""

import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.weight_arrays import pack, unpack
from layerwise._tool.backends.tensors import dtype_name, dtype_row
from layerwise._tool.backends.trt.library import check, cudart

_REFUSED = "the engine cannot be captured in a CUDA graph: leave the graph out"


class Stream:
    """A CUDA stream, and the copies on it."""

    def __init__(self) -> None:
        self.cuda = cudart()
        self.handle = check(self.cuda.cudaStreamCreate(), "a CUDA stream cannot be made")

    def to_device(self, address: int, array: Array) -> None:
        """Begin to copy a contiguous array to `address`; keep the array until `wait` returns."""
        self._copy(address, array.ctypes.data, array.nbytes, self.cuda.cudaMemcpyKind.cudaMemcpyHostToDevice)

    def to_host(self, array: Array, address: int) -> None:
        """Begin to fill a contiguous array from `address`; it is full once `wait` returns."""
        self._copy(array.ctypes.data, address, array.nbytes, self.cuda.cudaMemcpyKind.cudaMemcpyDeviceToHost)

    def _copy(self, to: int, source: int, size: int, kind: Any) -> None:
        if size:
            check(self.cuda.cudaMemcpyAsync(to, source, size, kind, self.handle), "a copy to or from the GPU failed")

    def wait(self) -> None:
        """Wait for all that was begun."""
        check(self.cuda.cudaStreamSynchronize(self.handle), "the GPU failed")

    def close(self) -> None:
        if self.handle is not None:
            self.cuda.cudaStreamDestroy(self.handle)
            self.handle = None


class Buffer:
    """A piece of device memory, replaced by a larger one when it does not suffice, and never by a smaller one."""

    def __init__(self) -> None:
        self.address, self.size = 0, 0

    def ensure(self, size: int) -> int:
        """The address of at least `size` bytes (and one, since TensorRT takes no null). What was there is lost.

        LayerwiseError where the GPU has no room.
        """
        if not self.address or size > self.size:
            self.close()
            wanted = max(size, 1)
            self.address = int(check(cudart().cudaMalloc(wanted), f"no room for {wanted} bytes on the GPU"))
            self.size = wanted
        return self.address

    def close(self) -> None:
        if self.address:
            cudart().cudaFree(self.address)
        self.address, self.size = 0, 0


def device_form(array: Array) -> Array:
    """An array as the device holds it: contiguous, elements of 4 bits packed two a byte."""
    row = dtype_row(dtype_name(array))
    if row.bits < 8:
        return pack(np.ascontiguousarray(array).reshape(-1).view(np.uint8), row.bits)
    return np.ascontiguousarray(array).reshape(array.shape)


def host_form(data: Array, dtype: str, shape: tuple[int, ...]) -> Array:
    """An array of its bytes (uint8) on the device."""
    row = dtype_row(dtype)
    if row.bits < 8:
        return unpack(data, row.bits, math.prod(shape)).view(row.numpy).reshape(shape)
    return data.view(row.numpy).reshape(shape)


class CapturedRun:
    """What one call put on a stream, ready to be launched again on the same addresses."""

    def __init__(self, stream: Stream, enqueue: Callable[[], bool]) -> None:
        """Capture `enqueue`. LayerwiseError where the engine does what no graph can hold."""
        cuda, self._stream = cudart(), stream
        check(cuda.cudaStreamBeginCapture(stream.handle, cuda.cudaStreamCaptureMode.cudaStreamCaptureModeThreadLocal),
              _REFUSED)  # fmt: skip
        good = enqueue()
        graph = check(cuda.cudaStreamEndCapture(stream.handle), _REFUSED)
        if not good:
            raise LayerwiseError(_REFUSED)
        self._made = check(cuda.cudaGraphInstantiate(graph, 0), _REFUSED)
        cuda.cudaGraphDestroy(graph)

    def launch(self) -> None:
        """Begin the run; it is over when the stream has been waited for."""
        check(cudart().cudaGraphLaunch(self._made, self._stream.handle), "the CUDA graph cannot be launched")

    def close(self) -> None:
        """Give the graph back. May be called twice."""
        if self._made is not None:
            cudart().cudaGraphExecDestroy(self._made)
            self._made = None


class Graphs:
    """The last run of a context as a graph, captured anew when anything that it holds is another."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._key: Hashable = None
        self._run: CapturedRun | None = None

    def launch(self, key: Hashable, enqueue: Callable[[], bool]) -> bool:
        """Begin a run; false where it cannot be enqueued. key: shapes, addresses, values that shapes are made of."""
        if self._run is None or key != self._key:
            self.close()
            if not enqueue():  # TensorRT settles memory for new shapes in a run that is not captured
                return False
            self._stream.wait()
            self._run, self._key = CapturedRun(self._stream, enqueue), key
        self._run.launch()
        return True

    def close(self) -> None:
        if self._run is not None:
            self._run.close()
            self._run = None
