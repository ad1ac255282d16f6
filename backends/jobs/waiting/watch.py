"""Being told that a file changed (Linux inotify), so that nobody has to look again and again."""

import ctypes
import os
import select
import struct
from pathlib import Path

MODIFY = 0x2
CLOSE_WRITE = 0x8
CREATE = 0x100
DELETE = 0x200
MOVED_FROM = 0x40
MOVED_TO = 0x80
_EVENT = struct.Struct("iIII")
_libc = ctypes.CDLL(None, use_errno=True)


class Watch:
    """A set of watched files and folders behind one descriptor, `fd` (-1 where the system gives none: then
    poll).

    Closing a file that was open for writing is an event too, also when its holder was killed: that is how the
    end of a lock is noticed.
    """

    def __init__(self) -> None:
        self.fd = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(_libc, "inotify_init1") else -1

    def add(self, path: Path, mask: int = MODIFY | CLOSE_WRITE) -> int:
        """Watch a path; returns its number, or -1 when it cannot be watched."""
        return int(_libc.inotify_add_watch(self.fd, os.fsencode(path), mask)) if self.fd >= 0 else -1

    def remove(self, number: int) -> None:
        if self.fd >= 0 and number >= 0:
            _libc.inotify_rm_watch(self.fd, number)

    def drain(self) -> set[int]:
        """The numbers of the paths that changed since the last call."""
        changed: set[int] = set()
        while self.fd >= 0:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                break
            changed |= _numbers(data)
        return changed

    def wait(self, seconds: float) -> None:
        """Sleep until something changes, at most so long; without inotify, at most 50 ms."""
        poller = select.poll()
        if self.fd >= 0:
            poller.register(self.fd, select.POLLIN)
        poller.poll(max(0.0, seconds if self.fd >= 0 else min(seconds, 0.05)) * 1000)
        self.drain()

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _numbers(data: bytes) -> set[int]:
    found = set()
    place = 0
    while place + _EVENT.size <= len(data):
        number, _, _, length = _EVENT.unpack_from(data, place)
        found.add(number)
        place += _EVENT.size + length
    return found
