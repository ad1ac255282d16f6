"""Files without a name until they are whole: killed at any time, nothing of them is left.

Linux only (O_TMPFILE, open(2)), and not on every file system.
"""

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from backends.files import atomic_writer
from backends.paced import PacedStream

FLAG: int | None = getattr(os, "O_TMPFILE", None)
_OPEN_FILES = Path("/proc/self/fd")


def unnamed_file(folder: Path) -> BinaryIO | None:
    """Open a new file of `folder` for reading and writing, for `publish`. None where that is not to be had."""
    if FLAG is not None and _OPEN_FILES.is_dir():
        with suppress(OSError):
            return os.fdopen(os.open(folder, FLAG | os.O_RDWR | os.O_CLOEXEC, 0o666), "w+b")
    return None


def second_door(file: BinaryIO, offset: int) -> BinaryIO:
    """Open the same file again, with a position of its own. OSError as the system gives it."""
    opened = os.fdopen(os.open(_OPEN_FILES / str(file.fileno()), os.O_RDWR | os.O_CLOEXEC), "w+b")
    opened.seek(offset)
    return opened


def publish(file: BinaryIO, target: Path) -> None:
    """Sync the file and give it its name, in place of what had it; where links are refused its content is copied.

    OSError if it cannot be written out or cannot replace what is there; `target` is then as it was before.
    """
    file.flush()
    os.fsync(file.fileno())
    name = target.with_name(f".{target.name[:64]}.{secrets.token_hex(8)}.tmp")
    try:
        os.link(_OPEN_FILES / str(file.fileno()), name, src_dir_fd=file.fileno())  # with it linkat, which follows
    except OSError:
        _copy(file, target)
        return
    try:
        name.replace(target)
    except OSError:
        name.unlink(missing_ok=True)
        raise


def _copy(file: BinaryIO, target: Path) -> None:
    file.seek(0)
    with atomic_writer(target) as stream:
        copy = PacedStream(stream)
        shutil.copyfileobj(file, copy, 1 << 20)
        copy.flush()
