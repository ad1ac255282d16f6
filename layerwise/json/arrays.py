"""Arrays and tensors in JSON: base64 of numpy's and torch's own files."""

import io
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pybase64

from layerwise._tool.backends.formats.json_arrays import base64_chunks
from layerwise._tool.backends.formats.npy import array_from_npy, header_bytes, storable
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name
from layerwise.json.torch_file import read_tensor


def chunks(array: Any) -> Iterator[bytes]:
    """The base64 of an array in pieces."""
    stored = storable(array)
    return base64_chunks(header_bytes(stored), stored)


def encoded(array: Any, text: str | None = None) -> dict[str, Any]:
    """The fields of an array. "dtype" names types that numpy's format cannot express; Polygraphy passes over it.

    text: in place of its base64.
    """
    name = dtype_name(array)
    if text is None:
        text = b"".join(chunks(array)).decode()
    return {"array": text} | ({"dtype": name} if name in EXTENDED_NAMES or array.dtype.kind == "O" else {})


def decoded(text: str, name: str | None) -> Any:
    """An array of its own memory. ValueError if it is none. Old files have latin-1 in place of base64."""
    try:
        data = pybase64.b64decode_as_bytearray(text, validate=True)
    except ValueError:
        data = bytearray(text, "latin-1")
    if name is not None:
        return array_from_npy(data, name)
    found = np.load(io.BytesIO(data), allow_pickle=False)
    return found if isinstance(found, np.ndarray) else next(iter(found.values()))


def encoded_tensor(tensor: Any) -> dict[str, Any]:
    """The fields of a torch tensor."""
    import torch

    stream = io.BytesIO()
    torch.save(tensor, stream)
    return {"tensor": pybase64.b64encode(stream.getvalue()).decode()}


def decoded_tensor(text: str) -> Any:
    """A torch tensor; a numpy array where torch is not installed. ValueError if it is neither."""
    data = pybase64.b64decode(text, validate=True)
    if not _has_torch():
        return read_tensor(data)
    import torch

    return torch.load(io.BytesIO(data), weights_only=True)


def _has_torch() -> bool:
    if "torch" in sys.modules:
        return sys.modules["torch"] is not None
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True
