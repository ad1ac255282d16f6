"""Reads and writes Polygraphy's JSON: nested values and custom objects.

Custom objects carry their class's name under "polygraphy_class" as the last key. NaN and Infinity are bare, as
Python writes them. For arrays see `backends.formats.json_arrays`. Reading decodes no array until it is requested.
"""

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pybase64
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile, LayerwiseError
from layerwise._tool.backends.filesystem.direct_io import Writable
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.states import FileState
from layerwise._tool.backends.formats.json_arrays import (
    CLASS,
    MARK,
    Span,
    StoredArray,
    as_array,
    scan,
    write_array,
)
from layerwise._tool.backends.formats.json_text import check_values
from layerwise._tool.backends.formats.npy import array_from_npy, read_npz
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.torch_bridge import is_tensor, tensor_from_base64
from layerwise._tool.backends.wording import in_words

_LEGACY = "__polygraphy_encoded_"
_LEGACY_VALUE = "polygraphy_serialized_json_type"
Decoder = Callable[[dict[str, Any]], Any]


@runtime_checkable
class Encodable(Protocol):
    """A custom object of the format."""

    def to_json(self) -> dict[str, Any]:
        """Return its fields in order, with CLASS as the last key."""


def load(path: str | os.PathLike[str], decoders: Mapping[str, Decoder]) -> Any:
    """Read a JSON file; arrays become StoredArray, custom objects go through `decoders` (by class name).

    BadFile names the file and the reason: unreadable, not JSON, an unknown class, a missing field.
    """
    source = Path(path)
    found = scan(source)
    check_values(source, found.skeleton)
    reader = _Reader(source, found.spans, found.state, decoders)
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
    if isinstance(error, KeyError):
        return shown(f"field {error} is missing", 300)
    return in_words(error) or type(error).__name__


class _Reader(Struct):
    path: Path
    spans: list[Span]
    state: FileState
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
            return StoredArray(self.path, self.state, self.spans[int(number)], name)
        return _inline_array(text, name)


def _inline_array(text: str, name: str | None) -> Array:
    """Decode a string that the scanner did not recognise: base64, or an old file's latin-1, of .npy or .npz."""
    try:
        data = pybase64.b64decode(text, validate=True)
    except ValueError:
        data = text.encode("latin-1")
    if data.startswith(b"PK"):
        return next(iter(read_npz(io.BytesIO(data)).values()))
    return array_from_npy(data, name)


def save(path: str | os.PathLike[str], value: Any) -> None:
    """Write a value like Polygraphy: dicts, lists, numbers, strings, None, arrays and Encodable objects."""
    with atomic_writer(path) as stream:
        write_value(stream, value, 0)


def write_value(stream: Writable, value: Any, level: int) -> None:
    """Write a value whose first line is already indented by `level` steps; arrays are written in chunks."""
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
