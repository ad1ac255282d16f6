"""Tensors in device memory."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import packed_nbytes
from layerwise._tool.backends.trt.inference.memory import Stream, host_form


@dataclass(frozen=True, slots=True)
class DeviceTensor:
    """A contiguous tensor at a device address. owner: the object that keeps the memory allocated."""

    address: int
    shape: tuple[int, ...]
    dtype: str
    owner: Any = None

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return packed_nbytes(self.dtype, self.shape)


def fetch(stream: Stream, tensor: DeviceTensor) -> Array:
    """Return a copy on the host, after synchronising the stream."""
    data = np.empty(packed_nbytes(tensor.dtype, tensor.shape), np.uint8)
    stream.to_host(data, tensor.address)
    stream.wait()
    return host_form(data, tensor.dtype, tensor.shape)
