"""What lies in a job's folder, for those that must not import more than the standard library.

spec.json       what to do; a folder without it is no job (yet)
events.jsonl    the journal            replies.jsonl   what clients sent: answers, requests, cancel
log.txt         the worker's stdout and stderr
artifacts/      files the job made     lock            held by supervisor and worker while the job is alive
folders.jsonl   the folders that the job made outside of it, so that another attempt can make them again
tag             what marks the processes of a worker that was started before its job (see backends.jobs.spare)
reserve         some KB that are given back when the disk is full, so that the failure can be written down
"""

import json
import os
import shlex
from pathlib import Path
from typing import Any

SPEC = "spec.json"
REPLIES = "replies.jsonl"
LOG = "log.txt"
LOCK = "lock"
FOLDERS = "folders.jsonl"
_TAG = "tag"
_RESERVE = "reserve"
_RESERVE_BYTES = 16384


def raw_spec(folder: Path) -> dict[str, Any]:
    """The job's spec as plain JSON; {} when it cannot be read."""
    try:
        spec = json.loads((folder / SPEC).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return spec if isinstance(spec, dict) else {}


def command_of(folder: Path) -> str:
    """The command line that does the job again."""
    command = raw_spec(folder).get("command") or ["layerwise", "jobs", "retry", folder.name]
    return shlex.join(str(part) for part in command)


def mark_tag(folder: Path, tag: str) -> None:
    """Write down what marks the worker's processes. Raises OSError."""
    (folder / _TAG).write_text(tag)


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
        path.write_bytes(b"\1" * _RESERVE_BYTES)


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
