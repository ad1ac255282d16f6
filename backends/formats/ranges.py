"""Parts of regular files: read, mapped, or read as a stream, never beyond their ends."""

import io
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.filesystem.files import open_regular


class FileRange(Struct, frozen=True):
    """`size` bytes of a regular file from `start`. file: it, open; None: it is opened by its path for each access."""

    path: Path
    start: int
    size: int
    file: BinaryIO | None = None

    @staticmethod
    def whole(path: Path) -> "FileRange":
        """All of a file. BadFile if it is not a regular one."""
        fd = open_regular(path)
        try:
            return FileRange(path, 0, os.fstat(fd).st_size)
        finally:
            os.close(fd)

    def part(self, start: int, size: int) -> "FileRange":
        """A part of this part. ValueError if it is not within it."""
        if start < 0 or size < 0 or start + size > self.size:
            raise ValueError(f"{size} bytes at {start} are not within its {self.size} bytes")
        return FileRange(self.path, self.start + start, size, self.file)

    def read(self, start: int, size: int) -> bytes:
        """Bytes from `start`: fewer than `size` at the end. BadFile if the file is gone, OSError from the system."""
        size = max(0, min(size, self.size - start))
        with self._opened() as fd:
            parts = []
            while size and (part := os.pread(fd, size, self.start + start)):
                parts.append(part)
                start, size = start + len(part), size - len(part)
        return b"".join(parts)

    def mapped(self, start: int, size: int) -> Array:
        """Bytes as a read-only array of uint8 that is mapped. ValueError if they are not there."""
        place = self.part(start, size).start
        if not size:
            return np.empty(0, np.uint8)
        before = place % mmap.ALLOCATIONGRANULARITY
        with self._opened() as fd:
            data = mmap.mmap(fd, size + before, access=mmap.ACCESS_READ, offset=place - before)
        return np.frombuffer(data, np.uint8, size, before)

    def stream(self) -> BinaryIO:
        """The part as a seekable stream of its own, to be closed."""
        fd = os.dup(self.file.fileno()) if self.file is not None else open_regular(self.path)
        return io.BufferedReader(_Stream(fd, self.start, self.size))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        if self.file is not None:
            yield self.file.fileno()
            return
        fd = open_regular(self.path)
        try:
            yield fd
        finally:
            os.close(fd)


class _Stream(io.RawIOBase):
    """Part of a file, with a position of its own whoever else reads the file."""

    def __init__(self, fd: int, start: int, size: int) -> None:
        self._fd, self._start, self._size, self._at = fd, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        count = max(0, min(len(buffer), self._size - self._at))
        done = os.preadv(self._fd, [memoryview(buffer)[:count]], self._start + self._at) if count else 0
        self._at += done
        return done

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError("a place before the beginning")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        if not self.closed:
            os.close(self._fd)
        super().close()
