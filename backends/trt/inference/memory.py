"""Device memory that only grows, and copies on one stream."""

import math
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.model.packing import pack, unpack
from layerwise._tool.backends.tensors import dtype_name, dtype_row
from layerwise._tool.backends.trt.library import check, cudart


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
