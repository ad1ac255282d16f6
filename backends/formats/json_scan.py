"""Finds the arrays of a Polygraphy JSON file without reading them.

A results file is nearly all base64. The scanner reads only what is between the arrays: where the string of
an `"array"` key begins with a base64 .npy header, the header determines where the string must end, and the
scanner continues there. What remains (the skeleton: the file with each such string replaced by a short
mark) is ordinary JSON of a few hundred bytes per tensor.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pybase64

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.files import MOST, open_regular
from layerwise._tool.backends.formats.npy import HEAD, NpyHeader, header_size, parse_header

MARK = "layerwise:array:"
WINDOW = 1 << 16
_KEY = re.compile(rb'(?<!\\)"array"[ \t\r\n]{0,64}:[ \t\r\n]{0,64}"')
_KEY_ROOM = 160  # longer than any match of _KEY


class Span(NamedTuple):
    """One base64 string in a file: its offset and length (bytes), and the .npy header it begins with."""

    start: int
    length: int
    header: NpyHeader


@dataclass(frozen=True)
class Stamp:
    """Detects whether a file has changed since it was scanned."""

    device: int
    inode: int
    size: int
    mtime_ns: int

    @classmethod
    def of(cls, descriptor: int) -> "Stamp":
        """Return the stamp of an open file."""
        stat = os.fstat(descriptor)
        return cls(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns)


class Scan(NamedTuple):
    """A scanned file: JSON text in which array i reads MARK + str(i), and the position of each array."""

    skeleton: bytes
    spans: list[Span]
    stamp: Stamp


def scan(path: Path) -> Scan:
    """Scan a JSON file. BadFile if it cannot be read or has too much text outside arrays."""
    try:
        with os.fdopen(open_regular(path), "rb", buffering=0) as stream:
            return _Scanner(path, stream.fileno()).run()
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from error


class _Scanner:
    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.stamp = Stamp.of(descriptor)
        self.parts: list[bytes] = []
        self.kept = 0
        self.spans: list[Span] = []

    def run(self) -> Scan:
        window, base = self._window(0)
        position = 0  # everything before this is in the skeleton
        while True:
            found = _KEY.search(window, position - base)
            if found is None:
                position = self._keep_settled(window, base, position)
                if len(window) < WINDOW and position >= self.stamp.size:
                    return Scan(b"".join(self.parts), self.spans, self.stamp)
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
