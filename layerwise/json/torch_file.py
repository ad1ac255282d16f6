"""A tensor of a file that torch.save wrote, as a numpy array, without torch. None of the file's code is run."""

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import to_numpy

_STORAGES = {
    "FloatStorage": "float32", "DoubleStorage": "float64", "HalfStorage": "float16", "BFloat16Storage": "bfloat16",
    "LongStorage": "int64", "IntStorage": "int32", "ShortStorage": "int16", "CharStorage": "int8",
    "ByteStorage": "uint8", "BoolStorage": "bool",
}  # fmt: skip
_UNTYPED = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "uint16", "uint32", "uint64")
_MOST = 1 << 40  # elements: beyond it a size is nonsense


def read_tensor(data: bytes) -> Array:
    """Read the file's tensor. ValueError if it holds anything else."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            root = next(name for name in archive.namelist() if name.endswith("/data.pkl")).removesuffix("data.pkl")
            found = _Unpickler(archive, root).load()
    except (zipfile.BadZipFile, StopIteration, KeyError, pickle.UnpicklingError, EOFError, AttributeError, TypeError,
            IndexError, OverflowError) as error:  # fmt: skip
        raise ValueError(f"not a torch tensor: {str(error)[:200]}") from None
    if not isinstance(found, np.ndarray):
        raise ValueError("not a torch tensor")
    return found


class _Unpickler(pickle.Unpickler):
    """Knows the functions that make tensors, and nothing else."""

    def __init__(self, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(io.BytesIO(archive.read(f"{root}data.pkl")))
        self.archive, self.root = archive, root

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("torch._utils", "_rebuild_tensor_v3"):
            return _tensor_of_bytes
        if module == "torch" and name in _STORAGES:
            return to_numpy(_STORAGES[name])
        if module == "torch" and name in _UNTYPED:
            return to_numpy(name)
        if (module, name) == ("torch.storage", "UntypedStorage"):
            return np.dtype(np.uint8)
        raise ValueError(f"it needs {module}.{name}, which tensors do not")

    def persistent_load(self, pid: Any) -> Array:
        """A storage: kind, numpy's type, name, device, number of elements."""
        _, dtype, key, _, count = pid
        data = np.frombuffer(self.archive.read(f"{self.root}data/{key}"), np.uint8)
        return data[: count * dtype.itemsize].view(dtype)


def _tensor(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Array:
    shape, steps = tuple(map(int, size)), tuple(map(int, stride))
    if len(shape) != len(steps) or min((offset, *shape, *steps)) < 0 or math.prod(shape) > _MOST:
        raise ValueError("its sizes are not those of a tensor")
    if not math.prod(shape):
        return np.empty(shape, storage.dtype)
    if offset + sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) >= len(storage):
        raise ValueError("it has less data than its sizes need")
    step = storage.dtype.itemsize
    plain = storage.view(f"u{step}")[offset:]  # numpy has no strides of FP8
    found = np.lib.stride_tricks.as_strided(plain, shape, [each * step for each in steps], writeable=False)
    return found.copy().view(storage.dtype)


def _tensor_of_bytes(
    storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], grad: bool, hooks: Any, dtype: Any,
    *_: Any,
) -> Array:  # fmt: skip
    return _tensor(storage.view(dtype), offset, size, stride)
