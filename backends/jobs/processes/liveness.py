"""Whether a job's processes live where its lock does not tell: the file may have been deleted, moved or replaced.

Only /proc is asked. Where there is none nobody is found, and the lock alone counts.
"""

import os
from contextlib import suppress
from pathlib import Path

from layerwise._tool.backends.jobs.folder import LOCK
from layerwise._tool.backends.jobs.processes.control import is_tagged

_IN_JOBS = "/jobs/"


def lives(folder: Path, worker: int = 0) -> bool:
    """Whether a process holds a lock of the job that is not the file that stands there now, or its worker runs.

    worker: the process id that the journal names, 0 for none.
    """
    return (worker > 0 and is_tagged(worker, folder)) or os.path.realpath(folder) in held_elsewhere()


def held_elsewhere() -> set[str]:
    """Folders of jobs whose lock somebody has open although another file, or none, is at its place now.

    A lock is held by a descriptor for reading and writing that does not append, of a file right in the folder
    (see backends.jobs.workspace.locks; the journal is appended to).
    """
    found = set()
    with suppress(OSError):
        for process in os.scandir("/proc"):
            if process.name.isdecimal():
                found |= _held_by(process.path)
    return found


def _held_by(process: str) -> set[str]:
    found = set()
    with suppress(OSError), os.scandir(f"{process}/fd") as descriptors:
        for descriptor in descriptors:
            with suppress(OSError, ValueError, KeyError):
                opened = os.readlink(descriptor.path)  # noqa: PTH115 (a Path each would take half the time)
                if _IN_JOBS not in opened:  # most: a busy machine has many thousand
                    continue
                folder, keeps = Path(opened).parent, Path(descriptor.path)
                if folder.parent.name == "jobs" and _is_for_keeping(keeps) and not _stands(keeps, folder):
                    found.add(str(folder))
    return found


def _is_for_keeping(descriptor: Path) -> bool:
    lines = descriptor.parent.with_name("fdinfo").joinpath(descriptor.name).read_text().splitlines()
    flags = int(dict(line.split(":", 1) for line in lines if ":" in line)["flags"], 8)
    return flags & os.O_ACCMODE == os.O_RDWR and not flags & os.O_APPEND


def _stands(descriptor: Path, folder: Path) -> bool:
    """Whether what the descriptor has open is the job's lock file as it stands there now."""
    try:
        return os.path.samestat(descriptor.stat(), (folder / LOCK).lstat())
    except FileNotFoundError:
        return False
