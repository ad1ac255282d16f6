"""What lies in a job's folder, for those that must not import more than the standard library.

spec.json       what to do; a folder without it is no job (yet)
events.jsonl    the journal            replies.jsonl   what clients sent: answers, requests, cancel
log.txt         the worker's stdout and stderr
artifacts/      files the job made     lock            held by supervisor and worker while the job is alive
folders.jsonl   the folders that the job made outside of it, so that another attempt can make them again
tag             what marks the processes of a worker that was started before its job (see backends.jobs.spare)
temporary       names of files that attempts write (see backends.temporary)
reserve         some KB that are given back when the disk is full, so that the failure can be written down
"""

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

from backends.shell import shell_line

SPEC = "spec.json"
REPLIES = "replies.jsonl"
LOG = "log.txt"
LOCK = "lock"
TEMPORARY = "temporary"
FOLDERS = "folders.jsonl"
_TAG = "tag"
_RESERVE = "reserve"
_RESERVE_BYTES = 16384
_LONGEST_LINE = 400  # characters: a card fits in one line of the journal


def is_own_job(folder: Path) -> bool:
    """Whether it is a job's folder that this user made, with a spec that he wrote."""
    try:
        made, spec = folder.lstat(), (folder / SPEC).lstat()
    except OSError:
        return False
    kinds = stat.S_ISDIR(made.st_mode) and stat.S_ISREG(spec.st_mode)
    return kinds and made.st_uid == spec.st_uid == os.geteuid()


def read_own(path: Path) -> bytes:
    """What is in a file that this user wrote. Raises OSError, also where it is a link or another user's."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(fd, "rb") as stream:
        if not is_own(fd):
            raise PermissionError(errno.EACCES, "it belongs to another user", str(path))
        return stream.read()


def is_own(fd: int) -> bool:
    """Whether an open file is this user's, and a plain file."""
    found = os.fstat(fd)
    return found.st_uid == os.geteuid() and stat.S_ISREG(found.st_mode)


def write_own(path: Path, data: bytes, flags: int = os.O_TRUNC) -> None:
    """Write a file that is its user's alone. Raises OSError."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)


def raw_spec(folder: Path) -> dict[str, Any]:
    """The job's spec as plain JSON; {} when it cannot be read."""
    try:
        spec = json.loads(read_own(folder / SPEC))
    except (OSError, ValueError, RecursionError):
        return {}
    return spec if isinstance(spec, dict) else {}


def command_of(folder: Path) -> str:
    """A line for the shell that does the job again: its retry where its own command is long, or not known."""
    command = raw_spec(folder).get("command")
    line = shell_line(command) if isinstance(command, list) else ""
    return line if 0 < len(line) <= _LONGEST_LINE else shell_line(["layerwise", "jobs", "retry", folder.name])


def mark_tag(folder: Path, tag: str) -> None:
    """Write down what marks the worker's processes. Raises OSError."""
    write_own(folder / _TAG, tag.encode())


def tags_of(folder: Path) -> list[str]:
    """What the processes of the job's workers are marked with: the folder, or what `mark_tag` wrote."""
    try:
        return [str(folder), (folder / _TAG).read_text()]
    except (OSError, UnicodeDecodeError):
        return [str(folder)]


def make_reserve(folder: Path) -> None:
    """Put some space aside. Raises OSError when there is none."""
    path = folder / _RESERVE
    if not path.exists():
        write_own(path, b"\1" * _RESERVE_BYTES)


def release_reserve(folder: Path) -> None:
    """Give back the space that was put aside."""
    (folder / _RESERVE).unlink(missing_ok=True)


def disk_use(folder: Path) -> int:
    """Bytes that the folder takes on the disk."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(Path(parent, name)).st_blocks * 512
            except OSError:
                continue
    return total
