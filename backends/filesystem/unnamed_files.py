"""Files without a name until they are complete: a killed writer leaves nothing behind.

Linux only (O_TMPFILE, open(2)), and not on every file system.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from layerwise._tool.backends.filesystem.temporary import lock, name_beside, open_named, sweep_once

FLAG: int | None = getattr(os, "O_TMPFILE", None)
_OPEN_FILES = Path("/proc/self/fd")


def unnamed_file(folder: Path) -> BinaryIO | None:
    """Open a new file in `folder` for reading and writing, for `give_name`. None if that is not supported."""
    sweep_once(folder)
    if FLAG is not None and _OPEN_FILES.is_dir():
        with suppress(OSError):
            return os.fdopen(os.open(folder, FLAG | os.O_RDWR | os.O_CLOEXEC, 0o600), "w+b")
    return None


def scratch_file(folder: Path) -> BinaryIO:
    """Open a file in `folder` that never gets a name, for reading and writing. OSError from the system."""
    file = unnamed_file(folder)
    if file is not None:
        return file
    fd, path = open_named(folder / "scratch")
    path.unlink()
    return cast(BinaryIO, os.fdopen(fd, "w+b"))


def second_door(file: BinaryIO, offset: int) -> BinaryIO:
    """Open the same file again, with its own position. OSError from the system."""
    opened = os.fdopen(os.open(_OPEN_FILES / str(file.fileno()), os.O_RDWR | os.O_CLOEXEC), "w+b")
    opened.seek(offset)
    return opened


def give_name(file: BinaryIO, target: Path) -> bool:
    """Move an unnamed file to `target`, replacing what is there; False if the file system refuses links.

    OSError if it cannot replace `target`, which is then unchanged.
    """
    if not os.path.lexists(target):
        with suppress(OSError):
            _link(file, target)
            return True
    lock(file.fileno())
    name = name_beside(target)
    try:
        _link(file, name)
    except OSError:
        return False
    try:
        name.replace(target)
    except OSError:
        name.unlink(missing_ok=True)
        raise
    return True


def _link(file: BinaryIO, name: Path) -> None:
    os.link(_OPEN_FILES / str(file.fileno()), name, src_dir_fd=file.fileno())  # makes linkat follow the link
