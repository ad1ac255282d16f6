"""The heap of a process that others are forked from, in pages of 2 MiB where the kernel can.

A fork then copies one entry for 512 pages, and less is copied when it writes.
"""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_SIZE = 2 << 20
_COLLAPSE = 25  # MADV_COLLAPSE, since Linux 6.1
_held: list[bytes] = []


def reserve(megabytes: int = 64) -> None:
    """Have what is imported from now on lie together: Python's arenas, which are made here and kept."""
    made = [bytes(480) for _ in range(megabytes << 11)]
    _held.extend(made[:: 1 << 10])


def collapse() -> None:
    """Collapse what this process has written so far; nothing happens where that is not known or not possible."""
    with suppress(OSError, AttributeError):
        advise = ctypes.CDLL(None).madvise
        advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        for start, end in _anonymous():
            advise(start, end - start, _COLLAPSE)


def _anonymous() -> Iterator[tuple[int, int]]:
    """The whole huge pages of memory that is writable, private and no file's."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines():
        places, rights, _, _, inode, *_ = line.split()
        if rights == "rw-p" and inode == "0":
            start, end = (int(place, 16) for place in places.split("-"))
            start, end = -(-start // _SIZE) * _SIZE, end // _SIZE * _SIZE
            if start < end:
                yield start, end
