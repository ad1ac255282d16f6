"""Files of one JSON object a line, which outlive the death of whoever writes them.

A line counts once its newline is on file. Every line is one `os.write` to a descriptor opened with O_APPEND,
so that writers never mix and a killed writer leaves at most one broken line at the end. Readers skip broken
lines.
"""

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from backends.jobs.folder import is_own

MAX_LINE = 4096
_CHUNK = 1 << 20
_END_OF_BROKEN = b"#\n"  # also what lacks only its newline stays broken: it was never counted


def encode_line(value: dict[str, Any]) -> bytes:
    """One JSON object and its newline, ASCII only.

    Numpy scalars and arrays become numbers and lists, NaN stays bare.
    """
    return _ENCODER.encode(value).encode("ascii") + b"\n"


def _plain(value: Any) -> Any:
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
        self._fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if not is_own(self._fd):
            os.close(self._fd)
            raise PermissionError(errno.EACCES, "it belongs to another user", str(path))
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
    """Reads the whole lines that were added since the last call; remembers only an offset.

    A file that another user made has none.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self.path = path
        self.offset = offset

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield the objects of the new whole lines; `offset` always stands after the last line that was
        yielded.
        """
        try:
            fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            if is_own(fd):
                yield from self._whole_lines(fd)
        finally:
            os.close(fd)

    def _whole_lines(self, fd: int) -> Iterator[dict[str, Any]]:
        rest = b""
        place = self.offset
        while block := os.pread(fd, _CHUNK, place):
            place += len(block)
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                self.offset += len(line) + 1
                value = decode_line(line) if line else None
                if value is not None:
                    yield value


def last_lines(path: Path, window: int = 1 << 16) -> list[dict[str, Any]]:
    """The objects of the whole lines in the last `window` bytes of a file."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return []
    return list(LineReader(path, max(0, size - window)).read())
