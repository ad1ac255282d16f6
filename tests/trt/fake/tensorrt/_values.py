"""Dims, Permutation, Weights, IHostMemory, Logger: the small values that travel between calls."""

import ctypes
import sys
import time
from typing import Any

import numpy as np

from ._arguments import CLASSES, INTEGERS, Mismatch
from ._callbacks import call
from ._classes import behaves, new
from ._types import dtype_of, numpy_of

MAX_DIMS = 8


class _Sequence:
    _items: list[int]

    def _init(self, *items: Any) -> None:
        self._items = [int(x) for x in (items[0] if len(items) == 1 and isinstance(items[0], list) else items)]

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: Any) -> Any:
        return tuple(self._items[at]) if isinstance(at, slice) else self._items[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        self._items[at] = value

    def __str__(self) -> str:
        return str(tuple(self._items))

    __repr__ = __str__


@behaves("Dims", "Dims2", "Dims3", "Dims4", "DimsHW", "DimsExprs")
class _Dims(_Sequence):
    MAX_DIMS = property(lambda self: MAX_DIMS)
    h = property(lambda self: self._items[0], lambda self, v: self._items.__setitem__(0, v))
    w = property(lambda self: self._items[1], lambda self, v: self._items.__setitem__(1, v))
    __hash__ = None

    def __eq__(self, other: Any) -> bool:
        return self._items == list(other)

    @classmethod
    def _implicit(cls, value: Any) -> Any:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            raise Mismatch
        if not all(isinstance(x, INTEGERS) for x in value) or len(value) > MAX_DIMS:
            raise Mismatch
        return dims(value)


@behaves("Permutation")
class _Permutation(_Sequence):
    @classmethod
    def _implicit(cls, value: Any) -> Any:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__len__"):
            raise Mismatch
        return new("Permutation", _items=[int(x) for x in value])


def dims(shape: Any) -> Any:
    """A Dims of these extents."""
    return new("Dims", _items=[int(x) for x in shape])


@behaves("Weights")
class _Weights:
    _array: Any

    def _init(self, first: Any, *pointer: int) -> None:
        if isinstance(first, np.ndarray):
            self._array, self._dtype = np.asarray(first, order="C"), dtype_of(first.dtype)
        elif pointer:
            kind = numpy_of(first)
            raw = ctypes.string_at(pointer[0], pointer[1] * kind.itemsize)
            self._array, self._dtype = np.frombuffer(raw, kind), first
        else:
            self._array, self._dtype = np.zeros(0, numpy_of(first)), first

    dtype = property(lambda self: self._dtype)
    size = property(lambda self: int(self._array.size))
    nbytes = property(lambda self: int(self._array.nbytes))

    def __len__(self) -> int:
        return int(self._array.size)

    def numpy(self) -> Any:
        return self._array.reshape(-1)

    @classmethod
    def _implicit(cls, value: Any) -> Any:
        if value is None:
            return None
        if not isinstance(value, np.ndarray):
            raise Mismatch
        return weights(value)


def weights(array: Any) -> Any:
    """Weights over a numpy array."""
    return new("Weights", _array=np.asarray(array, order="C"), _dtype=dtype_of(array.dtype))


@behaves("IHostMemory")
class _HostMemory:
    nbytes = property(ctypes.sizeof)
    dtype = property(lambda self: CLASSES["DataType"].INT8)


def host_memory(data: bytes) -> Any:
    """An IHostMemory that offers these bytes through the buffer protocol."""
    base: Any = type(ctypes.c_ubyte * 1)("IHostMemory", (CLASSES["IHostMemory"], ctypes.c_ubyte * len(data)), {})
    item = base.from_buffer_copy(data)
    item.__dict__.update(_made=True, _values={})
    return item


@behaves("ILogger")
class _ILogger:
    def log(self, severity: Any, msg: str) -> None:
        raise NotImplementedError("ILogger.log is pure virtual")


@behaves("Logger")
class _Logger:
    def _init(self, min_severity: Any) -> None:
        self._values["min_severity"] = min_severity

    def log(self, severity: Any, msg: str) -> None:
        if int(severity) <= int(self._values["min_severity"]):
            sys.stdout.write(time.strftime(f"[%m/%d/%Y-%H:%M:%S] [TRT] [{severity.name[0]}] ") + msg + "\n")


def say(logger: Any, severity: str, text: str) -> None:
    """Hand a message to a logger, as TensorRT does."""
    level = getattr(CLASSES["ILogger.Severity"], severity)
    if logger is not None and type(logger) is CLASSES["Logger"]:
        _Logger.log(logger, level, text)
    elif logger is not None:
        call("log", logger.log, level, text)
