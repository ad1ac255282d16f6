"""Device memory and streams for scripts."""

import math
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.trt.inference.memory import Buffer
from layerwise._tool.backends.trt.inference.memory import Stream as Inner
from layerwise._tool.backends.trt.library import check, cudart


class MemcpyKind:
    """Where a copy goes from and to."""

    HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Default = range(5)


class Cuda:
    """CUDA's runtime. Addresses and streams are integers; LayerwiseError names what failed."""

    def malloc(self, nbytes: int) -> int:
        """The address of so many fresh bytes on the device."""
        return int(check(cudart().cudaMalloc(nbytes), f"no room for {nbytes} bytes on the GPU"))

    def free(self, ptr: int) -> None:
        """Give memory back."""
        check(cudart().cudaFree(ptr), "memory of the GPU cannot be freed")

    def memcpy(self, dst: int, src: int, nbytes: int, kind: int, stream_ptr: int | None = None) -> None:
        """Copy; with a stream, only begin to."""
        cuda = cudart()
        direction = cuda.cudaMemcpyKind(kind)
        if stream_ptr is None:
            answer = cuda.cudaMemcpy(dst, src, nbytes, direction)
        else:
            answer = cuda.cudaMemcpyAsync(dst, src, nbytes, direction, cuda.cudaStream_t(stream_ptr))
        check(answer, "a copy to or from the GPU failed")

    def create_stream(self) -> int:
        """A fresh stream."""
        return int(check(cudart().cudaStreamCreate(), "a CUDA stream cannot be made"))

    def stream_synchronize(self, ptr: int) -> None:
        """Wait for all that was begun on a stream."""
        check(cudart().cudaStreamSynchronize(cudart().cudaStream_t(ptr)), "the GPU failed")

    def destroy_stream(self, ptr: int) -> None:
        """Give a stream back."""
        check(cudart().cudaStreamDestroy(cudart().cudaStream_t(ptr)), "a CUDA stream cannot be freed")


_CUDA = Cuda()


def wrapper() -> Cuda:
    """CUDA's runtime, the same object each time."""
    return _CUDA


class Stream:
    """A CUDA stream, freed at the end of a `with` or by `free`. ptr: its address."""

    def __init__(self) -> None:
        self._inner = Inner()
        self.ptr = int(self._inner.handle)

    def synchronize(self) -> None:
        """Wait for all that was begun."""
        self._inner.wait()

    def free(self) -> None:
        """Give it back."""
        self._inner.close()
        self.ptr = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()


class DeviceView:
    """Memory on the device that belongs to somebody else: ptr (its address), shape, dtype (numpy's)."""

    def __init__(self, ptr: int, shape: Sequence[int], dtype: Any) -> None:
        self.ptr = int(ptr)
        self.shape = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)

    @property
    def nbytes(self) -> int:
        """Its size."""
        return math.prod(self.shape) * self.dtype.itemsize

    def copy_to(self, host_buffer: Array, stream: Stream | None = None) -> Array:
        """Fill a contiguous array of the same size and return it; with a stream, only begin to. UsageError if it does
        not fit."""
        _fits(self, host_buffer)
        _copy(host_buffer.ctypes.data, self.ptr, self.nbytes, MemcpyKind.DeviceToHost, stream)
        return host_buffer

    def numpy(self) -> Array:
        """A copy on the host."""
        return self.copy_to(np.empty(self.shape, self.dtype))

    def __str__(self) -> str:
        return f"(dtype={self.dtype.name}, shape={self.shape}), ptr={hex(self.ptr)}"


class DeviceArray(DeviceView):
    """Memory on the device, freed at the end of a `with` or by `free`. It grows and never shrinks."""

    def __init__(self, shape: Sequence[int] | None = None, dtype: Any = None) -> None:
        self._buffer = Buffer()
        super().__init__(0, shape or (0,), np.float32 if dtype is None else dtype)
        if shape is not None:
            self.resize(shape)

    @staticmethod
    def raw(shape: Sequence[int] | None = None) -> "DeviceArray":
        """An array of bytes."""
        return DeviceArray(shape, np.uint8)

    def resize(self, shape: Sequence[int]) -> None:
        """Another shape; what was there is lost where memory has to grow."""
        self.shape = tuple(shape)
        self.ptr = self._buffer.ensure(self.nbytes)

    def copy_from(self, host_buffer: Array, stream: Stream | None = None) -> "DeviceArray":
        """Take the values of a contiguous array, and its shape; with a stream, only begin to. UsageError for another
        type."""
        if host_buffer.dtype != self.dtype:
            raise UsageError(f"the device array is {self.dtype.name}, the host's {host_buffer.dtype.name}")
        self.resize(host_buffer.shape)
        _fits(self, host_buffer)
        _copy(self.ptr, host_buffer.ctypes.data, self.nbytes, MemcpyKind.HostToDevice, stream)
        return self

    def view(self, shape: Sequence[int] | None = None, dtype: Any = None) -> DeviceView:
        """The same memory as another shape and type. UsageError if it is too small for them."""
        found = DeviceView(self.ptr, self.shape if shape is None else shape, self.dtype if dtype is None else dtype)
        if found.nbytes > self.nbytes:
            raise UsageError(f"a view of {found.nbytes} bytes does not fit into {self.nbytes}")
        return found

    def free(self) -> None:
        """Give the memory back."""
        self._buffer.close()
        self.ptr, self.shape = 0, (0,)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.free()


def _fits(view: DeviceView, host: Array) -> None:
    if host.nbytes != view.nbytes or not host.flags.c_contiguous:
        raise UsageError(f"a contiguous array of {view.nbytes} bytes is needed; this one has {host.nbytes}")


def _copy(dst: int, src: int, nbytes: int, kind: int, stream: Stream | None) -> None:
    if nbytes:
        wrapper().memcpy(dst, src, nbytes, kind, None if stream is None else stream.ptr)
