"""Texts that grow in parallel and end up concatenated in one file.

If the file system can collapse holes in a file (ext4, XFS: FALLOC_FL_COLLAPSE_RANGE, fallocate(2)) all are in one
file, a terabyte apart, and large ones are moved together without copying, with spaces padding the last block of the
previous one. Otherwise all but the first are in separate files.
"""

import ctypes
import errno
import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import BinaryIO, Protocol

from layerwise._tool.backends.filesystem.direct_io import PacedStream
from layerwise._tool.backends.filesystem.files import atomic_writer, destination, publish
from layerwise._tool.backends.filesystem.unnamed_files import scratch_file, second_door, unnamed_file

GAP = 1 << 40  # bytes between the starts of two texts
LARGE = 1 << 20  # bytes from which on a text is not copied
_COLLAPSE_RANGE = 8


class Parts(Protocol):
    """streams: one per text. `close` joins them into one file; before it and after `abort` the target is unchanged."""

    streams: list[PacedStream]

    def close(self, between: bytes, end: bytes) -> None: ...
    def abort(self) -> None: ...


def open_parts(path: Path, count: int) -> Parts:
    """Open `count` texts that become the file `path`. `between` must allow trailing spaces."""
    target = destination(path)
    file = unnamed_file(target.parent) if count > 1 else None
    if file is not None:
        if _can_collapse(file.fileno(), count):
            return _Apart(target, file, count)
        file.close()
    return _Files(path, count)


class _Apart:
    """All texts in one unnamed file, far apart."""

    def __init__(self, path: Path, file: BinaryIO, count: int) -> None:
        self._path, self._block = path, os.fstatvfs(file.fileno()).f_bsize
        self._files = [file, *(second_door(file, place * GAP) for place in range(1, count))]
        self.streams = [PacedStream(opened) for opened in self._files]

    def close(self, between: bytes, end: bytes) -> None:
        for stream in self.streams:
            stream.flush()
        for place in range(len(self._files) - 1, 0, -1):
            self._join(place, between)
        first = self._files[0]
        os.pwrite(first.fileno(), end, os.fstat(first.fileno()).st_size)
        publish(first, self._path)
        self.abort()

    def _join(self, place: int, between: bytes) -> None:
        """Move the text at `place`, and all after it, to the end of the previous one."""
        before, start = self._files[place - 1], place * GAP
        before.write(between)
        size = os.fstat(before.fileno()).st_size - start
        if size < LARGE:
            before.write(os.pread(before.fileno(), size, start))
            before.truncate()
            return
        stop = before.seek(0, os.SEEK_CUR)
        padding = -stop % self._block
        before.write(b" " * padding)
        before.flush()
        _collapse(before.fileno(), stop + padding, start - stop - padding)

    def abort(self) -> None:
        for file in self._files:
            with suppress(OSError):  # unwritten data may hit a full disk
                file.close()


class _Files:
    """The first text in the target's own temporary file, each other one in a file that is appended to it."""

    def __init__(self, path: Path, count: int) -> None:
        self._stack = ExitStack()
        self.streams = [PacedStream(self._stack.enter_context(atomic_writer(path)))]
        for _ in range(1, count):
            file = self._stack.enter_context(scratch_file(destination(path).parent))
            self.streams.append(PacedStream(file))

    def close(self, between: bytes, end: bytes) -> None:
        first, *others = self.streams
        for stream in others:
            first.write(between)
            stream.append_to(first)
        first.write(end)
        first.flush()
        self._stack.close()

    def abort(self) -> None:
        self._stack.__exit__(InterruptedError, InterruptedError(), None)


def _can_collapse(fd: int, count: int) -> bool:
    """Test on the empty file: a hole of one block, then (where holes are known to be free) the real ones."""
    block = os.fstatvfs(fd).f_bsize
    try:
        for size in (2 * block, count * GAP):
            os.ftruncate(fd, size)
            _collapse(fd, 0, size - block)
        os.ftruncate(fd, 0)
    except OSError:
        return False
    return True


def _collapse(fd: int, offset: int, length: int) -> None:
    fallocate: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if fallocate is None:
        raise OSError(errno.EOPNOTSUPP, "no fallocate here")
    while fallocate(fd, _COLLAPSE_RANGE, ctypes.c_int64(offset), ctypes.c_int64(length)):
        code = ctypes.get_errno()
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code))
