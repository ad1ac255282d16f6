"""Arrays in Polygraphy's JSON: found without reading them, read lazily, written in chunks.

An array is `{"array": <base64 of an .npy>, "polygraphy_class": "ndarray"}`. We add `"dtype": "bfloat16"` (or FP8,
int4, string …) to those whose type .npy cannot express; Polygraphy ignores that key. Nothing is unpickled.

A results file is nearly all base64. The scanner reads only what is between the arrays: where the string of
an `"array"` key begins with a base64 .npy header, the header determines where the string must end, and the
scanner continues there. What remains (the skeleton: the file with each such string replaced by a short
mark) is ordinary JSON of a few hundred bytes per tensor.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pybase64
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile, NoArray
from layerwise._tool.backends.filesystem.direct_io import Writable
from layerwise._tool.backends.filesystem.files import MOST, open_regular
from layerwise._tool.backends.filesystem.states import FileState, state_of
from layerwise._tool.backends.formats.npy import (
    HEAD,
    NpyHeader,
    header_bytes,
    header_size,
    parse_header,
    shape_array,
    storable,
)
from layerwise._tool.backends.tensors import EXTENDED_NAMES, dtype_name
from layerwise._tool.backends.torch_bridge import is_tensor, to_array

MARK = "layerwise:array:"
WINDOW = 1 << 16
_AT_ONCE = 1 << 24  # a file up to this size is looked through as a whole: most that is not results has no array
_KEY = re.compile(rb'(?<!\\)"array"[ \t\r\n]{0,64}:[ \t\r\n]{0,64}"')
_KEY_ROOM = 160  # longer than any match of _KEY
CHUNK = 3 << 18  # bytes encoded at a time: a multiple of 3, so that base64 needs no padding inside
CLASS = "polygraphy_class"


class Span(NamedTuple):
    """One base64 string in a file: its offset and length (bytes), and the .npy header it begins with."""

    start: int
    length: int
    header: NpyHeader


class Scan(NamedTuple):
    """A scanned file: JSON text in which array i reads MARK + str(i), and the position of each array."""

    skeleton: bytes
    spans: list[Span]
    state: FileState


def scan(path: Path) -> Scan:
    """Scan a JSON file. BadFile if it cannot be read or has too much text outside arrays."""
    try:
        with os.fdopen(open_regular(path), "rb", buffering=0) as stream:
            return _Scanner(path, stream.fileno()).run()
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from error


def _next_key(window: bytes, start: int) -> "re.Match[bytes] | None":
    """The next match of _KEY; most text has none, and is passed over at the speed of a search for bytes."""
    at = window.find(b'"array"', start)
    while at >= 0:
        if (found := _KEY.match(window, at)) is not None:
            return found
        at = window.find(b'"array"', at + 1)
    return None


class _Scanner:
    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.state = state_of(descriptor)
        self.parts: list[bytes] = []
        self.kept = 0
        self.spans: list[Span] = []

    def run(self) -> Scan:
        if self.state.size <= _AT_ONCE:
            whole = os.pread(self.descriptor, self.state.size, 0)
            if b"y" not in whole or b'"array"' not in whole:  # one byte is found forty times as fast
                self._keep(whole)
                return Scan(whole, [], self.state)
        window, base = self._window(0)
        position = 0  # everything before this is in the skeleton
        while True:
            found = _next_key(window, position - base)
            if found is None:
                position = self._keep_settled(window, base, position)
                if len(window) < WINDOW and position >= self.state.size:
                    return Scan(b"".join(self.parts), self.spans, self.state)
                window, base = self._window(position)
                continue
            start = base + found.end()
            self._keep(window[position - base : found.end()])
            position = self._after_string(start)
            if position - base > len(window) - _KEY_ROOM:
                window, base = self._window(position)

    def _window(self, position: int) -> tuple[bytes, int]:
        """Return bytes from just before `position` (no backslash may precede a key), and their offset."""
        base = max(0, position - 1)
        return os.pread(self.descriptor, WINDOW, base), base

    def _after_string(self, start: int) -> int:
        """Record the array whose string begins at `start`; return where to continue."""
        span = self._span(start)
        if span is None:
            return start
        self._keep(f"{MARK}{len(self.spans)}".encode())
        self.spans.append(span)
        return start + span.length

    def _keep_settled(self, window: bytes, base: int, position: int) -> int:
        """Keep the part of the window that cannot begin a key; return where the next window begins."""
        last = len(window) < WINDOW
        end = max(position, base + len(window) - (0 if last else _KEY_ROOM))
        self._keep(window[position - base : end - base])
        return end

    def _keep(self, text: bytes) -> None:
        if b"\0" in text:
            raise BadFile(self.path, "not valid JSON: it holds a zero byte")
        self.kept += len(text)
        if self.kept > MOST:
            raise BadFile(self.path, "too large: more than 256 MiB of text that belongs to no array")
        self.parts.append(text)

    def _span(self, start: int) -> Span | None:
        """Return the string at `start` if it is a base64 .npy that ends where its header says, otherwise None."""
        try:
            size = header_size(self._decoded(start, HEAD))
            header = parse_header(self._decoded(start, size))
        except ValueError:
            return None
        length = -(-(header.size + header.nbytes) // 3) * 4
        if os.pread(self.descriptor, 1, start + length) != b'"':
            return None
        return Span(start, length, header)

    def _decoded(self, start: int, count: int) -> bytes:
        text = os.pread(self.descriptor, -(-count // 3) * 4, start)
        return pybase64.b64decode(text, validate=True)[:count]


class StoredArray(Struct, frozen=True):
    """An array not yet read from a JSON file."""

    path: Path
    state: FileState
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
        with self.path.open("rb", buffering=0) as stream:
            if state_of(stream.fileno()) != self.state:
                raise ValueError("the file has changed since it was opened")
            return _flat(stream.fileno(), self.span)


def span_array(descriptor: int, span: Span, name: str | None) -> Array:
    """Read an array of an open file, of its own memory. ValueError if it is damaged; OSError."""
    return shape_array(_flat(descriptor, span), span.header, name)


def _flat(descriptor: int, span: Span) -> Array:
    size = span.header.size + span.header.nbytes
    if span.length <= CHUNK:
        text = os.pread(descriptor, span.length, span.start)
        whole = np.frombuffer(pybase64.b64decode_as_bytearray(text, validate=True), np.uint8)
        filled = len(whole)
    else:
        whole = np.empty(size, np.uint8)
        filled = 0
        for text in _pieces(descriptor, span):
            data = pybase64.b64decode(text, validate=True)
            if len(data) > size - filled:
                raise ValueError("more data than its shape needs")
            whole[filled : filled + len(data)] = np.frombuffer(data, np.uint8)
            filled += len(data)
    if filled != size:
        raise ValueError(f"{'more' if filled > size else 'less'} data than its shape needs")
    return cast(Array, whole[span.header.size :].view(span.header.dtype))


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
