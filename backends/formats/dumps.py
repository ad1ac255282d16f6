"""Tensor dumps as safetensors: written incrementally, read one tensor at a time.

Format: https://github.com/huggingface/safetensors#format (8 bytes length, JSON header, little-endian data).
Types that it lacks are stored as U8 and described in `__metadata__` under "layerwise.dtypes", a JSON dict from
tensor name to {"dtype": name, "shape": [...]}: 4-bit and 2-bit integers and FP4 as one byte per element,
strings as one JSON list. Any safetensors reader can open the files; those tensors then appear as bytes.

The header comes first but is complete only at the end. A large dump reserves space for it, which the format lets us
pad with spaces, and is written once; a small one is copied behind its header.
"""

import json
import math
import os
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile, placing
from layerwise._tool.backends.filesystem.direct_io import PacedStream
from layerwise._tool.backends.filesystem.files import (
    MOST,
    WholeOrNothing,
    atomic_writer,
    destination,
    publish,
)
from layerwise._tool.backends.filesystem.unnamed_files import scratch_file, unnamed_file
from layerwise._tool.backends.formats.json_text import check_values
from layerwise._tool.backends.formats.ranges import FileRange
from layerwise._tool.backends.sizes import binary_size
from layerwise._tool.backends.tensors import dtype_name, to_numpy
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words

_NAMES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32",
    "int32": "I32", "uint64": "U64", "int64": "I64", "float16": "F16", "float32": "F32", "float64": "F64",
    "bfloat16": "BF16",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "complex64": "C64",
}  # fmt: skip
_TYPES = {code: name for name, code in _NAMES.items()}
EXTRA = "layerwise.dtypes"
MAX_HEADER = 100_000_000  # the format's own limit
ROOM = 256 << 10  # bytes before the first tensor: a header of some 2000
LARGE = 4 << 20  # bytes of tensors from which on that room does not matter
RESULTS_FORMAT = "layerwise.results.1"
FEEDS_FORMAT = "layerwise.feeds.1"
OBSERVED = "layerwise.observed"


class DumpWriter(WholeOrNothing):
    """Writes tensors to one file incrementally. It appears, complete, at `close`; after an error it does not."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.metadata: dict[str, str] = {}  # may be filled in until `close`
        self._entries: dict[str, dict[str, Any]] = {}
        self._extra: dict[str, dict[str, Any]] = {}
        self._offset = 0
        with placing(self.path):
            self._target = destination(self.path)
            unnamed = unnamed_file(self._target.parent)
            self._file = unnamed or scratch_file(self._target.parent)
        self._in_place = unnamed is not None
        self._file.seek(ROOM)
        self._spool = PacedStream(self._file)

    def add(self, name: str, array: Array) -> None:
        """Append one tensor. ValueError for a duplicate name."""
        if name in self._entries or name == "__metadata__":
            raise ValueError(f"tensor {name!r} twice in one dump")
        code, data = self._encode(name, array)
        end = self._offset + data.nbytes
        shape = [data.nbytes] if name in self._extra else list(array.shape)
        self._entries[name] = {"dtype": code, "shape": shape, "data_offsets": [self._offset, end]}
        self._spool.write(data)
        self._offset = end

    def _encode(self, name: str, array: Array) -> tuple[str, memoryview]:
        kind = dtype_name(array)
        if kind not in _NAMES:
            self._extra[name] = {"dtype": kind, "shape": list(array.shape)}
        if kind == "string":
            return "U8", memoryview(json.dumps([_text(item) for item in array.flat]).encode())
        if array.dtype.byteorder == ">":
            array = array.astype(array.dtype.newbyteorder("<"))
        raw = np.ascontiguousarray(array).reshape(-1)
        return _NAMES.get(kind, "U8"), raw.view(np.uint8).data if raw.size else memoryview(b"")

    def close(self) -> None:
        """Write the header and move the file into place."""
        metadata = self.metadata | ({EXTRA: json.dumps(self._extra)} if self._extra else {})
        header = json.dumps(({"__metadata__": metadata} if metadata else {}) | self._entries).encode()
        self._spool.flush()
        if self._in_place and self._offset >= LARGE and len(header) <= ROOM - 8:
            self._file.seek(0)
            self._file.write(struct.pack("<Q", ROOM - 8) + header.ljust(ROOM - 8))
            publish(self._file, self._target)
        else:
            self._copy(header + b" " * (-len(header) % 8))
        self._file.close()

    def _copy(self, header: bytes) -> None:
        with atomic_writer(self.path) as stream:
            target = PacedStream(stream)
            target.write(struct.pack("<Q", len(header)) + header)
            self._file.seek(ROOM)
            shutil.copyfileobj(self._file, target, 1 << 20)
            target.flush()

    def abort(self) -> None:
        """Discard everything; nothing is left on disk."""
        self._file.close()


def _text(item: Any) -> str:
    return item.decode("utf-8", "replace") if isinstance(item, bytes) else str(item)


class _Entry(NamedTuple):
    dtype: str
    shape: tuple[int, ...]
    start: int
    nbytes: int


class DumpReader:
    """Reads tensors of a dump, each memory-mapped on request. Works for any .safetensors file."""

    def __init__(self, path: str | os.PathLike[str], source: FileRange | None = None) -> None:
        """Read the header. BadFile if it is not a complete safetensors file.

        source: where it is, if not in a file of its own; `path` names it in messages.
        """
        self.path = Path(path)
        self.metadata: dict[str, str] = {}
        try:
            self._source = source or FileRange.whole(self.path)
            self._entries = self._read()
        except OSError as error:
            raise BadFile(path, error.strerror or str(error)) from error
        except RecursionError:
            raise BadFile(path, "not a safetensors file: header nested too deeply") from None
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise BadFile(path, f"not a safetensors file: {in_words(error)}") from None

    def names(self) -> list[str]:
        """The tensors' names, in the file's order."""
        return list(self._entries)

    def dtype(self, name: str) -> str:
        """A tensor's type."""
        return self._entries[name].dtype

    def shape(self, name: str) -> tuple[int, ...]:
        """A tensor's shape."""
        return self._entries[name].shape

    def array(self, name: str) -> Array:
        """Return one tensor, read-only and memory-mapped (strings are read). BadFile if it is damaged."""
        entry = self._entries[name]
        try:
            if entry.dtype == "string":
                return self._strings(entry)
            return self._mapped(entry)
        except OSError as error:
            raise BadFile(self.path, error.strerror or str(error)) from error
        except (ValueError, RecursionError, OverflowError) as error:
            raise BadFile(self.path, f"tensor {shown(name, 80)}: {in_words(error)}") from None

    def _mapped(self, entry: _Entry) -> Array:
        dtype = to_numpy(entry.dtype)
        if entry.nbytes == 0:
            return np.empty(entry.shape, dtype)
        raw = self._source.mapped(entry.start, entry.nbytes)
        if (self._source.start + entry.start) % dtype.alignment:
            raw = raw.copy()
        return raw.view(dtype).reshape(entry.shape)

    def _strings(self, entry: _Entry) -> Array:
        if entry.nbytes > MOST:
            raise ValueError(f"more than {binary_size(MOST)} of text")
        items = json.loads(self._source.read(entry.start, entry.nbytes))
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            raise ValueError("not a list of text")
        array = np.empty(len(items), object)
        array[:] = items
        return array.reshape(entry.shape)

    def _read(self) -> dict[str, _Entry]:
        size = self._source.size
        head = self._source.read(0, 8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else MAX_HEADER + 1
        if length > min(MAX_HEADER, size - 8):
            raise ValueError("its header's length is beyond its end")
        text = self._source.read(8, length)
        check_values(self.path, text)
        header = json.loads(text, object_pairs_hook=_once)
        metadata = header.pop("__metadata__", None) or {}
        if not all(isinstance(text, str) for text in metadata.values()):
            raise ValueError("its metadata is not text")
        self.metadata = dict(metadata)
        extra = json.loads(self.metadata.pop(EXTRA, "{}"))
        room = size - 8 - length
        entries = {name: _entry(name, fields, extra.get(name), room) for name, fields in header.items()}
        return {name: entry._replace(start=entry.start + 8 + length) for name, entry in entries.items()}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{name[:80]!r} is there twice")
    return fields


def _entry(name: str, fields: Mapping[str, Any], extra: Mapping[str, Any] | None, room: int) -> _Entry:
    start, end = fields["data_offsets"]
    kind = extra["dtype"] if extra else _TYPES.get(fields["dtype"])
    shape = tuple(extra["shape"] if extra else fields["shape"])
    if not isinstance(kind, str):
        raise ValueError(f"tensor {name[:80]!r}: data type {str(fields['dtype'])[:40]!r} is not supported")
    numbers = (start, end, *shape)
    if any(type(number) is not int or number < 0 for number in numbers) or not start <= end <= room:
        raise ValueError(f"tensor {name[:80]!r} lies outside of the file")
    if kind != "string" and math.prod(shape) * to_numpy(kind).itemsize != end - start:
        raise ValueError(f"tensor {name[:80]!r}: its shape does not fit its size")
    return _Entry(kind, shape, start, end - start)
