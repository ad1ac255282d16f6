"""What TensorRT tells of tensors that are marked for debugging."""

import ctypes
import math
from typing import Any

import numpy as np

from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.library import tensorrt
from layerwise.cuda import MemcpyKind, wrapper
from layerwise.datatype import DataType
from layerwise.logger import G_LOGGER


class DebugTensors:
    """Keeps the values of debug tensors of the last run, by name."""

    def __init__(self) -> None:
        self.polygraphy_debug_tensor_outputs: dict[str, Any] = {}

    def keep(self, address: int, on_host: bool, kind: Any, shape: Any, name: str, stream: int) -> None:
        """Copy a tensor's values."""
        dtype = DataType.from_dtype(kind, "tensorrt")
        if dtype.itemsize < 1:
            G_LOGGER.warning(f"Debug tensor '{shown(name, 120)}' of type {dtype} is not kept")
            return
        values = np.zeros(tuple(shape), DataType.to_dtype(dtype, "numpy"))
        wrapper().stream_synchronize(stream)
        if on_host:
            ctypes.memmove(values.ctypes.data, address, values.nbytes)
        elif math.prod(shape):
            wrapper().memcpy(values.ctypes.data, address, values.nbytes, MemcpyKind.DeviceToHost)
        self.polygraphy_debug_tensor_outputs[name] = values


def debug_listener() -> Any:
    """A trt.IDebugListener that keeps the values of tensors."""
    trt = tensorrt()

    class Listener(trt.IDebugListener, DebugTensors):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            trt.IDebugListener.__init__(self)
            DebugTensors.__init__(self)

        def process_debug_tensor(self, addr: int, location: Any, type: Any, shape: Any, name: str, stream: int) -> bool:
            self.keep(addr, location == trt.TensorLocation.HOST, type, shape, name, stream)
            return True

    return Listener()
