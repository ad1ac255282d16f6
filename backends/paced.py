"""Writing large files at the disk's pace, without filling the page cache with what nobody will read soon."""

import os
import shutil
from typing import BinaryIO, Protocol

STEP = 32 << 20  # bytes


class Writable(Protocol):
    """Anything that takes bytes."""

    def write(self, data: bytes | memoryview, /) -> int: ...


class PacedStream:
    """Writes to a file and, every 32 MiB, waits for the disk and lets the pages go.

    The file is synced at its end anyway, so this costs nothing on a slow disk, and where fresh memory is dear (a
    virtual machine) it is several times faster than leaving a gigabyte of dirty pages.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self._since = 0

    def write(self, data: bytes | memoryview, /) -> int:
        """Write all of `data`."""
        count = self.stream.write(data)
        self._since += count
        if self._since >= STEP:
            self.settle()
        return count

    def settle(self) -> None:
        """Get on disk what was written, and out of memory."""
        self.stream.flush()
        if hasattr(os, "posix_fadvise"):
            os.fdatasync(self.stream.fileno())
            os.posix_fadvise(self.stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self._since = 0

    def append_to(self, target: Writable) -> None:
        """Copy all that was written to another stream, from the beginning."""
        self.stream.seek(0)
        shutil.copyfileobj(self.stream, target, 1 << 20)
