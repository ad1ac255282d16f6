"""Polygraphy's JSON: arrays, nested values and its custom objects, both ways.

An array is `{"array": <base64 of an .npy>, "polygraphy_class": "ndarray"}`; other objects carry their class's
name under "polygraphy_class" as the last key. We add `"dtype": "bfloat16"` (or FP8, int4, string …) to arrays
whose type .npy cannot tell; Polygraphy ignores that key. NaN and Infinity are bare, as Python writes them.
Reading decodes no array before it is asked for. Nothing is unpickled.
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import pybase64

from backends.errors import BadFile, LayerwiseError
from backends.files import atomic_writer
from backends.json_scan import MARK, Span, Stamp, scan
from backends.npy import Array, NpyHeader, array_from_npy, header_bytes, shape_array, storable
from backends.npz import read_npz
from backends.paced import Writable
from backends.tensors import EXTENDED_NAMES, dtype_name
from backends.text import shown
from backends.torch_bridge import is_tensor, tensor_from_base64, to_array

CHUNK = 3 << 18  # bytes encoded at a time: a multiple of 3, so that base64 needs no padding inside
CLASS = "polygraphy_class"
_LEGACY = "__polygraphy_encoded_"
_LEGACY_VALUE = "polygraphy_serialized_json_type"
Decoder = Callable[[dict[str, Any]], Any]


@runtime_checkable
class Encodable(Protocol):
    """A custom object of the format."""

    def to_json(self) -> dict[str, Any]:
        """Its fields in order, with CLASS as the last key."""


@dataclass(frozen=True)
class StoredArray:
    """An array that still lies in a JSON file."""

    path: Path
    stamp: Stamp
    span: Span
    name: str | None  # the type's name where the file tells it

    @property
    def header(self) -> NpyHeader:
        """Type, shape and size, known without reading the array."""
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
        """Read and decode the array; holds no more than it and one chunk. BadFile if it cannot be."""
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


def load(path: str | os.PathLike[str], decoders: Mapping[str, Decoder]) -> Any:
    """Read a JSON file; arrays come as StoredArray, objects with a class through `decoders` (by class name).

    BadFile names the file and the reason: unreadable, not JSON, an unknown class, a field missing.
    """
    source = Path(path)
    found = scan(source)
    reader = _Reader(source, found.spans, found.stamp, decoders)
    try:
        return json.loads(found.skeleton, object_hook=reader.decode)
    except BadFile:
        raise
    except RecursionError:
        raise BadFile(source, "nested too deeply") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise BadFile(source, f"not valid JSON: {_first_line(error)}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, MemoryError) as error:
        raise BadFile(source, f"not in Polygraphy's format: {_first_line(error)}") from None
    except LayerwiseError as error:
        raise BadFile(source, str(error)) from error


def _first_line(error: BaseException) -> str:
    text = f"field {error} is missing" if isinstance(error, KeyError) else str(error)
    return shown(text.splitlines()[0] if text else type(error).__name__, 300)


@dataclass
class _Reader:
    path: Path
    spans: list[Span]
    stamp: Stamp
    decoders: Mapping[str, Decoder]

    def decode(self, fields: dict[str, Any]) -> Any:
        name = self._class(fields)
        if name is None:
            return fields
        if name == "ndarray":
            return self._array(fields)
        if name == "Tensor":
            return tensor_from_base64(fields["tensor"])
        if name in ("LazyArray", "LazyNumpyArray"):
            values = fields["values"]
            return np.asarray(values) if isinstance(values, int | float) else values
        decoder = self.decoders.get(name)
        if decoder is None:
            raise ValueError(f"unknown {CLASS} {name!r}")
        return decoder(fields)

    def _class(self, fields: dict[str, Any]) -> str | None:
        name = fields.pop(CLASS, None)
        if isinstance(name, str):
            return name
        for key, value in fields.items():
            if key.startswith(_LEGACY) and isinstance(value, str) and value == _LEGACY_VALUE:
                del fields[key]
                return key.removeprefix(_LEGACY)
        return None

    def _array(self, fields: dict[str, Any]) -> "StoredArray | Array":
        text, name = fields["array"], fields.get("dtype")
        if not isinstance(text, str) or not isinstance(name, str | None):
            raise ValueError("an ndarray is not what it should be")
        number = text.removeprefix(MARK)
        if number != text and number.isdigit() and int(number) < len(self.spans):
            return StoredArray(self.path, self.stamp, self.spans[int(number)], name)
        return _inline_array(text, name)


def _inline_array(text: str, name: str | None) -> Array:
    """Decode a string that the scanner could not place: base64, or an old file's latin-1, of .npy or .npz."""
    try:
        data = pybase64.b64decode(text, validate=True)
    except ValueError:
        data = text.encode("latin-1")
    if data.startswith(b"PK"):
        return next(iter(read_npz(io.BytesIO(data)).values()))
    return array_from_npy(data, name)


def as_array(value: Any) -> Array:
    """Return a value of a file as an array: a StoredArray is read, numbers and lists are converted."""
    if isinstance(value, StoredArray):
        return value.array()
    if isinstance(value, np.ndarray):
        return value
    return to_array(value) if is_tensor(value) else np.asarray(value)


def save(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value as Polygraphy does: dicts, lists, numbers, text, None, arrays and Encodable objects."""
    with atomic_writer(path) as stream:
        write_value(stream, value, 0)


def write_value(stream: Writable, value: Any, level: int) -> None:
    """Write a value whose first line is indented by `level` steps already; arrays go out in chunks."""
    if isinstance(value, StoredArray | np.ndarray) or is_tensor(value):
        write_array(stream, as_array(value), level)
    elif isinstance(value, Encodable):
        write_value(stream, value.to_json(), level)
    elif isinstance(value, Mapping):
        _write_items(stream, "{}", ((f"{json.dumps(str(k))}: ", v) for k, v in value.items()), level)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        _write_items(stream, "[]", (("", item) for item in value), level)
    else:
        stream.write(json.dumps(value.item() if isinstance(value, np.generic) else value).encode())


def _write_items(stream: Writable, brackets: str, items: Iterator[tuple[str, Any]], level: int) -> None:
    pad = "    " * (level + 1)
    before = f"{brackets[0]}\n{pad}"
    empty = True
    for key, value in items:
        stream.write((before + key).encode())
        write_value(stream, value, level + 1)
        before, empty = f",\n{pad}", False
    stream.write((brackets if empty else f"\n{'    ' * level}{brackets[1]}").encode())


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
    """Yield the base64 of `head` and the array's bytes, in pieces of about a megabyte."""
    data = array.reshape(-1).view(np.uint8).data if array.size else memoryview(b"")
    first = (3 - len(head) % 3) % 3
    yield pybase64.b64encode(head + bytes(data[:first]))
    for offset in range(first, len(data), CHUNK):
        yield pybase64.b64encode(data[offset : offset + CHUNK])
