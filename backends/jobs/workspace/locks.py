"""flock: held by descriptors, given up by the kernel when the last process that has one dies.

Whoever means to keep a lock opens the file for writing (`hold`), whoever only looks opens it for reading
(`probe`): closing a descriptor that was open for writing is what watchers of the file are told
(backends.jobs.waiting.watch), so the end of a hold wakes them, and looking does not.
"""

import fcntl
import os
import time
from pathlib import Path

from layerwise._tool.backends.filesystem.regular import open_regular

ENDING = 15.0
"""Seconds for which a supervisor may hold its job's lock after the job's last word: a moment, but on a busy machine."""


def hold(path: Path) -> int | None:
    """Take the lock of a file (made if need be) for long; the descriptor that holds it, or None when another
    has it. Raises Damaged, as all here do, where no file is but something else.
    """
    return _take(path, os.O_RDWR)


def probe(path: Path) -> int | None:
    """Take the lock of a file for a moment; the descriptor that holds it, or None when another has it."""
    return _take(path, os.O_RDONLY)


def hold_within(path: Path, seconds: float) -> int | None:
    """Like `hold`, trying again for some time: another process may only be looking."""
    deadline = time.monotonic() + seconds
    while (fd := hold(path)) is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return fd


def enter(path: Path) -> int:
    """Wait for a lock that is only ever taken for a moment."""
    fd = _open(path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX)
    return fd


def _take(path: Path, mode: int) -> int | None:
    fd = _open(path, mode)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    return fd


def _open(path: Path, mode: int) -> int:
    return open_regular(path, mode | os.O_CREAT, own=True)
