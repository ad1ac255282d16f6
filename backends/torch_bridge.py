"""Converts torch tensors to NumPy arrays and back, if torch is installed. Torch is imported only when needed."""

import io
from typing import Any

import numpy as np
import pybase64

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.installed import require
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name, to_numpy
from layerwise._tool.backends.text import shown


def import_torch(purpose: str) -> Any:
    """Import torch. MissingDependency says what it is needed for."""
    return require("torch", purpose)


def is_tensor(value: object) -> bool:
    """True for a torch tensor, without importing torch."""
    return any(base.__module__ == "torch" and base.__name__ == "Tensor" for base in type(value).__mro__)


def to_array(tensor: Any) -> Array:
    """Copy a torch tensor (any device) to NumPy; bfloat16 and FP8 keep their type.

    LayerwiseError for layouts that are not dense.
    """
    name = str(tensor.dtype).removeprefix("torch.")
    try:
        dense = tensor.detach().cpu().contiguous()
        if name in EXTENDED_NAMES:
            torch = import_torch("a torch tensor")
            raw = dense.view(torch.int16 if to_numpy(name).itemsize == 2 else torch.uint8).numpy()
            return np.asarray(raw.view(to_numpy(name))).copy()
        return np.array(dense.numpy())
    except (TypeError, RuntimeError) as error:
        raise LayerwiseError(f"a torch tensor of type {name} cannot be used: {error}") from error


def to_tensor(array: Array) -> Any:
    """Copy an array to a torch tensor on the CPU. LayerwiseError for a type that torch does not have."""
    torch = import_torch("a PyTorch module")
    name = dtype_name(array)
    kind = getattr(torch, name, None)
    if kind is None or not isinstance(kind, torch.dtype):
        raise LayerwiseError(f"torch has no tensors of type {shown(name, 60)}")
    if name in EXTENDED_NAMES:
        raw = np.ascontiguousarray(array).view(np.int16 if array.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(raw.reshape(array.shape).copy()).view(kind)
    return torch.from_numpy(np.array(array, order="C"))


def tensor_from_base64(text: str) -> Array:
    """Read what `torch.save` wrote, weights only: no pickled code runs. ValueError if it is not a tensor."""
    torch = import_torch("a torch tensor in the file")
    try:
        tensor = torch.load(io.BytesIO(pybase64.b64decode(text, validate=True)), weights_only=True)
    except Exception as error:  # torch.load raises many kinds of errors
        raise ValueError(f"not a torch tensor: {str(error).splitlines()[0][:200]}") from error
    if not is_tensor(tensor):
        raise ValueError("not a torch tensor")
    return to_array(tensor)
