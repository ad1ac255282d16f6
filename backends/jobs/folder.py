"""What lies in a job's folder, for those that must not import more than the standard library.

spec.json       what to do; a folder without it is no job (yet)
events.jsonl    the journal            replies.jsonl   what clients sent: answers, requests, cancel
log.txt         the worker's stdout and stderr
artifacts/      files the job made     lock            held by supervisor and worker while the job is alive
folders.jsonl   the folders that the job made outside of it, so that another attempt can make them again
tag             what marks the processes of a worker that was started before its job (see backends.jobs.processes.spare)
temporary       names of files that attempts write (see backends.filesystem.temporary)
reserve         some KB that are given back when the disk is full, so that the failure can be written down
"""

import json
import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

from layerwise._tool.backends.filesystem.regular import kind_of, open_regular, read_regular
from layerwise._tool.backends.shell import shell_line

SPEC = "spec.json"
REPLIES = "replies.jsonl"
LOG = "log.txt"
LOCK = "lock"
TEMPORARY = "temporary"
JOURNAL = "events.jsonl"
ARTIFACTS = "artifacts"
MAX_ID = 10**15 - 1
MAX_SPEC = 1 << 25
_TAG = "tag"
_RESERVE = "reserve"
_RESERVE_BYTES = 16384
_LONGEST_LINE = 400  # characters: a card fits in one line of the journal
_SPARE = r"spare-[0-9a-f]{32}"


def job_id(name: str) -> int:
    """The id that is written so, 0 for all that is none: "007", "-1", digits that are not ASCII, too many."""
    if not (name.isascii() and name.isdecimal() and len(name) <= len(str(MAX_ID))) or name.startswith("0"):
        return 0
    return int(name)


def is_own(folder: Path) -> bool:
    """Whether a folder is one, and no link to another."""
    return folder.is_dir() and not folder.is_symlink()


def is_anothers(folder: Path) -> bool:
    """Whether another user made a job's folder, or wrote its spec."""
    owners = []
    for path in (folder, folder / SPEC):
        with suppress(OSError):
            owners.append(path.lstat().st_uid)
    return any(owner != os.geteuid() for owner in owners)


def write_own(path: Path, data: bytes, flags: int = os.O_TRUNC) -> None:
    """Write a file that is its user's alone. Raises OSError, also where there is a link or another user's file."""
    fd = open_regular(path, os.O_WRONLY | os.O_CREAT | flags, own=True)
    with os.fdopen(fd, "wb") as stream:
        stream.write(data)


def is_started(folder: Path) -> bool:
    """Whether what is at a job's place is more than a job that is still being made, whatever it lacks.

    What is no folder is: a job in place of which somebody put it.
    """
    if not is_own(folder):
        return os.path.lexists(folder)
    return os.path.lexists(folder / SPEC) or os.path.lexists(folder / LOG)


def damage_of(folder: Path) -> str:
    """Which of a job's files is not what it should be, in words; "" if all are."""
    found = _strange(folder, folder=True)
    if found:
        return f"its folder {found}"
    for name in (JOURNAL, SPEC, LOCK, REPLIES, LOG, _TAG, _RESERVE, ARTIFACTS):
        found = _strange(folder / name, folder=name == ARTIFACTS)
        if not found and name in (JOURNAL, SPEC) and not os.path.lexists(folder / name):
            found = "is missing"
        if found:
            return f"{name} {found}"
    return ""


def _strange(path: Path, *, folder: bool = False) -> str:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return ""
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    kind = kind_of(mode) or "a file"
    if kind != ("a folder" if folder else "a file"):
        return f"is {kind}"
    return "" if folder or os.access(path, os.R_OK, effective_ids=True) else "cannot be read (no permission)"


def raw_spec(folder: Path) -> dict[str, Any]:
    """The job's spec as plain JSON; {} when it cannot be read."""
    try:
        spec = json.loads(read_regular(folder / SPEC, MAX_SPEC, own=True))
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
    write_own(folder / _TAG, f"{tag}\n{os.path.realpath(folder)}".encode())


def tags_of(folder: Path) -> list[str]:
    """What the processes of the job's workers are marked with: the folder, or what `mark_tag` wrote for it.

    A folder that was copied has the tag of another job, which may be alive.
    """
    own = {str(folder), os.path.realpath(folder)}
    try:
        tag, _, of = read_regular(folder / _TAG, 1 << 14, own=True).decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        tag = of = ""
    return [*own, tag] if re.fullmatch(_SPARE, tag) and of == os.path.realpath(folder) else [*own]


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
