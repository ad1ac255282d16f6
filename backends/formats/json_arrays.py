"""Arrays in Polygraphy's JSON: read lazily, written in chunks.

An array is `{"array": <base64 of an .npy>, "polygraphy_class": "ndarray"}`. We add `"dtype": "bfloat16"` (or FP8,
int4, string …) to those whose type .npy cannot express; Polygraphy ignores that key. Nothing is unpickled.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pybase64

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile, NoArray
from layerwise._tool.backends.filesystem.direct_io import Writable
from layerwise._tool.backends.formats.json_scan import Span, Stamp
from layerwise._tool.backends.formats.npy import NpyHeader, header_bytes, shape_array, storable
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name
from layerwise._tool.backends.torch_bridge import is_tensor, to_array

CHUNK = 3 << 18  # bytes encoded at a time: a multiple of 3, so that base64 needs no padding inside
CLASS = "polygraphy_class"


@dataclass(frozen=True)
class StoredArray:
    """An array not yet read from a JSON file."""

    path: Path
    stamp: Stamp
    span: Span
    name: str | None  # the type's name if the file states it

    @property
    def header(self) -> NpyHeader:
        """Return type, shape and size, without reading the array."""
        return self.span.header

    @property
    def dtype(self) -> str:
        """The type's name."""
        return self.name or dtype_name(self.header.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return self.header.shape

    def array(self) -> Array:
        """Read and decode the array in chunks, of which it holds one at a time. BadFile if it is damaged."""
        try:
            return shape_array(self._flat(), self.header, self.name)
        except ValueError as error:
            raise BadFile(self.path, f"array at byte {self.span.start}: {error}") from None
        except OSError as error:
            raise BadFile(self.path, error.strerror or str(error)) from error

    def _flat(self) -> Array:
        whole = np.empty(self.header.size + self.header.nbytes, np.uint8)
        filled = 0
        with self.path.open("rb", buffering=0) as stream:
            if Stamp.of(stream.fileno()) != self.stamp:
                raise ValueError("the file has changed since it was opened")
            for text in _pieces(stream.fileno(), self.span):
                data = pybase64.b64decode(text, validate=True)
                if len(data) > len(whole) - filled:
                    raise ValueError("more data than its shape needs")
                whole[filled : filled + len(data)] = np.frombuffer(data, np.uint8)
                filled += len(data)
        if filled != len(whole):
            raise ValueError("less data than its shape needs")
        return cast(Array, whole[self.header.size :].view(self.header.dtype))


def _pieces(descriptor: int, span: Span) -> Iterator[bytes]:
    step = CHUNK // 3 * 4
    for offset in range(0, span.length, step):
        yield os.pread(descriptor, min(step, span.length - offset), span.start + offset)


def as_array(value: Any) -> Array:
    """as_array"""
    if isinstance(value, StoredArray):
        return value.array()
    if isinstance(value, np.ndarray):
        return value
    if is_tensor(value):
        return to_array(value)
    try:
        return np.asarray(value)
    except ValueError as error:
        raise NoArray(f"a list that is no array: {' '.join(str(error).split())}") from None


def write_array(stream: Writable, array: Array, level: int) -> None:
    """Write one array as an ndarray object; needs at most one copy of it (none for C order)."""
    name = dtype_name(array)
    stored = storable(array)
    pad = "\n" + "    " * (level + 1)
    stream.write(f'{{{pad}"array": "'.encode())
    for text in base64_chunks(header_bytes(stored), stored):
        stream.write(text)
    sidecar = f'{pad}"dtype": "{name}",' if name in EXTENDED_NAMES or name == "string" else ""
    stream.write(f'",{sidecar}{pad}"{CLASS}": "ndarray"\n{"    " * level}}}'.encode())


def base64_chunks(head: bytes, array: Array) -> Iterator[bytes]:
    """Yield the base64 of `head` and the array's bytes, in chunks of about a megabyte."""
    data = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
    first = (3 - len(head) % 3) % 3
    yield pybase64.b64encode(head + bytes(data[:first]))
    for offset in range(first, len(data), CHUNK):
        yield pybase64.b64encode(data[offset : offset + CHUNK])
