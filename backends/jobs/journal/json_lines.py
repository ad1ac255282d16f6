"""Files of one JSON object a line, which outlive the death of whoever writes them.

A line counts once its newline is on file. Every line is one `os.write` to a descriptor opened with O_APPEND,
so that writers never mix and a killed writer leaves at most one broken line at the end. Readers skip broken
lines; one of more than MAX_LINE bytes is broken, whatever it holds, and is never kept.
"""

import errno
import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import copy
from functools import cache
from math import inf, isfinite
from pathlib import Path
from typing import Any

from layerwise._tool.backends.filesystem.regular import Damaged, next_data, open_regular

MAX_LINE = 4096
_CHUNK = 1 << 20
_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
_NOT_FINITE_TEXT = {inf: b"Infinity", -inf: b"-Infinity"}
_END_OF_BROKEN = b"#\n"  # also what lacks only its newline stays broken: it was never counted


def encode_line(value: dict[str, Any]) -> bytes:
    """One JSON object and its newline, ASCII only.

    Numpy scalars and arrays become numbers and lists, msgspec Structs objects; NaN stays bare.
    """
    quick = _encode_struct(value) if hasattr(value.get("row"), "__struct_fields__") else None
    return quick or _ENCODER.encode(value).encode("ascii") + b"\n"


def _encode_struct(value: dict[str, Any]) -> bytes | None:
    """The line of an event whose row is a Struct, many times faster; None if it holds what msgspec writes otherwise:
    NaN and infinities (found in MessagePack) other than as fields of the row, characters that are not ASCII, integers
    of more than 64 bits.
    """
    packed, text = _encoders()
    with suppress(OverflowError):
        value = {**value, "row": _as_written(value["row"])}
        if _NOT_FINITE.search(packed(value)):
            return None
        line = text(value) + b"\n"
        return line if line.isascii() else None
    return None


@cache
def _encoders() -> tuple[Callable[[Any], bytes], Callable[[Any], bytes]]:
    """What writes MessagePack, and JSON."""
    from msgspec import json as fast  # who writes no Struct does not load it
    from msgspec import msgpack

    return msgpack.Encoder(enc_hook=_plain).encode, fast.Encoder(enc_hook=_plain).encode


def _as_written(row: Any) -> Any:
    """The row with the text of NaN and infinities in the fields that hold them."""
    from msgspec import Raw
    from msgspec.structs import astuple, force_setattr

    written = row
    for name, value in zip(row.__struct_fields__, astuple(row), strict=True):
        if type(value) is float and not isfinite(value):
            written = copy(row) if written is row else written
            force_setattr(written, name, Raw(_NOT_FINITE_TEXT.get(value, b"NaN")))
    return written


def _plain(value: Any) -> Any:
    if hasattr(value, "__struct_fields__"):
        from msgspec import to_builtins

        return to_builtins(value, enc_hook=_plain)
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


_ENCODER = json.JSONEncoder(default=_plain, separators=(",", ":"))


def decode_line(line: bytes) -> dict[str, Any] | None:
    """The object of a line, or None when it is broken."""
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


class LineWriter:
    """Appends lines; the first write ends a broken one that it finds. Not to be used in forked children.

    Raises OSError, also where the file is another user's.
    """

    def __init__(self, path: Path) -> None:
        self._fd = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, own=True)
        self._broken = self._unfinished()

    def _unfinished(self) -> bool:
        size = os.fstat(self._fd).st_size
        return size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"

    def write(self, line: bytes) -> None:
        """Append one line whole. Raises OSError (a full disk among them); what comes next is whole again."""
        data = _END_OF_BROKEN + line if self._broken else line
        self._broken = True
        if os.write(self._fd, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._broken = False

    def close(self) -> None:
        os.close(self._fd)


class LineReader:
    """Reads the whole lines that were added since the last call; remembers only an offset, and never more than a
    block of the file. An offset that stands after no newline is inside of a broken line.

    A file that another user made has none.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the objects of the new whole lines; `offset` always stands after the last line that was yielded.

        Nothing is read where no regular file is.
        """
        try:
            fd = open_regular(self.path, own=True)
        except (FileNotFoundError, Damaged):
            return
        try:
            for line in self._whole_lines(fd):
                value = decode_line(line)
                if value is not None:
                    yield value
        finally:
            os.close(fd)

    def _whole_lines(self, fd: int) -> Iterator[bytes]:
        rest, place = b"", self.offset
        inside_broken = place > 0 and os.pread(fd, 1, place - 1) != b"\n"
        while True:
            written = next_data(fd, place)
            if written > place:  # a hole is no text: the line around it is broken
                rest, place, inside_broken = b"", written, True
                self.offset = place
            block = os.pread(fd, _CHUNK, place)
            if not block:
                return
            place += len(block)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                self.offset += len(line) + 1
                if not inside_broken and 0 < len(line) < MAX_LINE:
                    yield line
                inside_broken = False
            if inside_broken or len(rest) >= MAX_LINE:
                self.offset += len(rest)
                rest, inside_broken = b"", True


def last_lines(path: Path, window: int = 1 << 16) -> list[dict[str, Any]]:
    """The objects of the whole lines in the last `window` bytes of a file."""
    try:
        size = path.lstat().st_size
    except OSError:
        return []
    return list(LineReader(path, max(0, size - window)).read())
