"""Device memory and streams for scripts."""

import ctypes
import math
from collections.abc import Sequence
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.trt.inference.memory import Buffer
from layerwise._tool.backends.trt.inference.memory import Stream as Inner
from layerwise._tool.backends.trt.library import check, cudart
from layerwise.datatype import DataType, DataTypeEntry
from layerwise.exception import DataTypeConversionException
from layerwise.func import constantmethod
from layerwise.util import array, make_repr

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Cuda", "DeviceArray", "DeviceView", "MemcpyKind", "Stream", "wrapper"]


def void_ptr(val: int | None = None) -> ctypes.c_void_p:
    """An address as ctypes has it."""
    return ctypes.c_void_p(val)


class MemcpyKind(IntEnum):
    """Where a copy goes from and to."""

    HostToHost, HostToDevice, DeviceToHost, DeviceToDevice, Default = range(5)


class Cuda:
    """CUDA's runtime. Addresses and streams are integers; LayerwiseError names what failed."""

    def __init__(self) -> None:
        self.handle: Any = None

    @constantmethod
    def check(self, status: int) -> None:
        """LayerwiseError for what a function of the runtime returned, if it is an error."""
        if int(status) != 0:
            raise LayerwiseError(f"CUDA Error: {int(status)}")

    @constantmethod
    def malloc(self, nbytes: int) -> int:
        """The address of so many fresh bytes on the device."""
        return int(check(cudart().cudaMalloc(nbytes), f"no room for {nbytes} bytes on the GPU"))

    @constantmethod
    def free(self, ptr: int) -> None:
        """Give memory back."""
        check(cudart().cudaFree(ptr), "memory of the GPU cannot be freed")

    @constantmethod
    def memcpy(self, dst: int, src: int, nbytes: int, kind: int, stream_ptr: int | None = None) -> None:
        """Copy; with a stream, only begin to."""
        cuda = cudart()
        direction = cuda.cudaMemcpyKind(int(getattr(kind, "value", kind)))
        if stream_ptr is None:
            answer = cuda.cudaMemcpy(dst, src, nbytes, direction)
        else:
            answer = cuda.cudaMemcpyAsync(dst, src, nbytes, direction, cuda.cudaStream_t(stream_ptr))
        check(answer, "a copy to or from the GPU failed")

    @constantmethod
    def create_stream(self) -> int:
        """A fresh stream."""
        return int(check(cudart().cudaStreamCreate(), "a CUDA stream cannot be made"))

    @constantmethod
    def stream_synchronize(self, ptr: int) -> None:
        """Wait for all that was begun on a stream."""
        check(cudart().cudaStreamSynchronize(cudart().cudaStream_t(ptr)), "the GPU failed")

    @constantmethod
    def destroy_stream(self, ptr: int) -> None:
        """Give a stream back."""
        check(cudart().cudaStreamDestroy(cudart().cudaStream_t(ptr)), "a CUDA stream cannot be freed")


G_CUDA = Cuda()
"""CUDA's runtime, which is loaded when it is used."""


def wrapper() -> Cuda:
    """CUDA's runtime, the same object each time."""
    return G_CUDA


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

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.free()


def try_get_stream_handle(stream: Stream | None) -> int | None:
    """The address of a stream, None of none."""
    return None if stream is None else stream.ptr


class DeviceView:
    """Memory on the device that belongs to somebody else: ptr (its address), shape, dtype (numpy's)."""

    def __init__(self, ptr: int, shape: Sequence[int], dtype: Any) -> None:
        self.ptr = int(ptr)
        self.shape = shape if isinstance(shape, tuple) else tuple(shape)
        self.dtype = dtype

    @property
    def dtype(self) -> Any:
        """numpy's type; the DataType where numpy has none. May be set to any type."""
        try:
            return DataType.to_dtype(self._dtype, "numpy")
        except DataTypeConversionException:
            return self._dtype

    @dtype.setter
    def dtype(self, new: Any) -> None:
        self._dtype = DataType.from_dtype(new)
        self.itemsize = self._dtype.itemsize if isinstance(self._dtype, DataTypeEntry) else np.dtype(new).itemsize

    @property
    def nbytes(self) -> int:
        """Its size."""
        return math.ceil(math.prod(self.shape) * self.itemsize)

    @constantmethod
    def copy_to(self, host_buffer: Any, stream: Stream | None = None) -> Any:
        """Fill a contiguous array of that type and at least that size, and return it; with a stream, only begin to.

        UsageError if it does not fit.
        """
        if self.nbytes:
            self._check(host_buffer, array.nbytes(host_buffer) >= self.nbytes)
            _copy(array.data_ptr(host_buffer), self.ptr, self.nbytes, MemcpyKind.DeviceToHost, stream)
        return host_buffer

    @constantmethod
    def numpy(self) -> Array:
        """A copy on the host."""
        found: Array = self.copy_to(np.empty(self.shape, self.dtype))
        return found

    def _check(self, host: Any, fits: bool) -> None:
        if array.dtype(host) != self._dtype:
            raise UsageError(f"the device array is {self._dtype}, the host's {array.dtype(host)}")
        if not fits or not array.is_contiguous(host):
            raise UsageError(f"a contiguous array of {self.nbytes} bytes is needed; this one has {array.nbytes(host)}")

    def __str__(self) -> str:
        return f"{type(self).__name__}[(dtype={self._dtype}, shape={self.shape}), ptr={hex(self.ptr)}]"

    def __repr__(self) -> str:
        return make_repr("DeviceView", ptr=self.ptr, shape=self.shape, dtype=self._dtype)[0]


class DeviceArray(DeviceView):
    """Memory on the device, freed at the end of a `with` or by `free`. It grows and never shrinks."""

    def __init__(self, shape: Sequence[int] | None = None, dtype: Any = None) -> None:
        self._buffer = Buffer()
        self.allocated_nbytes = 0
        super().__init__(0, () if shape is None else shape, DataType.FLOAT32 if dtype is None else dtype)
        self.resize(self.shape)

    @staticmethod
    def raw(shape: Sequence[int] | None = None) -> "DeviceArray":
        """An array of bytes."""
        return DeviceArray(shape, DataType.UINT8)

    def resize(self, shape: Sequence[int]) -> "DeviceArray":
        """Another shape; what was there is lost where memory has to grow. Returns itself."""
        self.shape = tuple(shape)
        self.ptr = self._buffer.ensure(self.nbytes)
        self.allocated_nbytes = max(self.allocated_nbytes, self.nbytes)
        return self

    def copy_from(self, host_buffer: Any, stream: Stream | None = None) -> "DeviceArray":
        """Take the values of a contiguous array; with a stream, only begin to. Returns itself.

        Of a larger array it takes the shape too. UsageError for another type.
        """
        if not array.nbytes(host_buffer):
            return self
        self._check(host_buffer, True)
        if array.nbytes(host_buffer) > self.nbytes:
            self.resize(array.shape(host_buffer))
        nbytes = array.nbytes(host_buffer)
        _copy(self.ptr, array.data_ptr(host_buffer), nbytes, MemcpyKind.HostToDevice, stream)
        return self

    def view(self, shape: Sequence[int] | None = None, dtype: Any = None) -> DeviceView:
        """The same memory as another shape and type. UsageError if it is too small for them."""
        found = DeviceView(self.ptr, self.shape if shape is None else shape, self._dtype if dtype is None else dtype)
        if found.nbytes > self.nbytes:
            raise UsageError(f"a view of {found.nbytes} bytes does not fit into {self.nbytes}")
        return found

    def free(self) -> None:
        """Give the memory back."""
        self._buffer.close()
        self.ptr, self.shape, self.allocated_nbytes = 0, (), 0

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.free()

    def __repr__(self) -> str:
        return make_repr("DeviceArray", shape=self.shape, dtype=self._dtype)[0]


def _copy(dst: int, src: int, nbytes: int, kind: MemcpyKind, stream: Stream | None) -> None:
    wrapper().memcpy(dst, src, nbytes, kind, try_get_stream_handle(stream))
