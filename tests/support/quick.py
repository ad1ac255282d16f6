"""Where a run of the tests puts its files: in memory, where that has room; those on a disk cost more, and waiting."""

import time
from contextlib import suppress
from pathlib import Path
from shutil import disk_usage, rmtree

SHARED_MEMORY = Path("/dev/shm")
PREFIX = "layerwise-tests-"
PLACE = SHARED_MEMORY if SHARED_MEMORY.is_dir() and disk_usage(SHARED_MEMORY).free > 4 << 30 else None
"""None: the usual folder for temporary files."""


def forget_killed_runs() -> None:
    """Remove what runs that were killed or have failed left in memory a day ago."""
    for left in SHARED_MEMORY.glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError):  # another process of this run removes it
            if time.time() - left.lstat().st_mtime > 24 * 3600:
                rmtree(left, ignore_errors=True)
