"""States of files: two equal ones mean equal content, as far as a file's times can tell.

The time of the inode (ctime) is part of a state: unlike the time of the content it cannot be set. The kernel advances
it in steps, so that two changes within one step look alike. `settled_state` waits until a change would be seen. A
program that writes through a shared memory map may change a file without a new time, until the page is written back.
"""

import os
import time
from typing import NamedTuple

_STEP = 20e-3  # seconds: twice that of a kernel of 100 Hz
_WHOLE = 2.0  # seconds, on file systems whose times have no fractions


class FileState(NamedTuple):
    """device, inode, size in bytes; mtime_ns, ctime_ns: when content and inode were changed."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


def state_of(file: int | str | os.PathLike[str]) -> FileState:
    """Return the state of a file, by path or descriptor. Raises OSError, and ValueError for an impossible path."""
    found = os.stat(file)  # noqa: PTH116 (a descriptor too)
    return FileState(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def settled_state(file: int | str | os.PathLike[str]) -> FileState | None:
    """Return a state that any later change changes; read the content after it. Waits up to 20 ms for that.

    None if the file is changed all the time, was changed in the future, or just now where times are in whole seconds.
    Raises like `state_of`.
    """
    for _ in range(2):
        found = state_of(file)
        left = _left(found)
        if left <= 0:
            return found
        if left > _STEP:
            return None
        time.sleep(left)
    found = state_of(file)
    return found if _left(found) <= 0 else None


def _left(state: FileState) -> float:
    """Return for how many seconds a change might not be seen yet."""
    step = _STEP if state.ctime_ns % 10**9 else _WHOLE
    return state.ctime_ns / 1e9 + step - time.time()
