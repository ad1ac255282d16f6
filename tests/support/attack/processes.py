"""Processes that an attempt has started, found by their environment, their folder and their session."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from support.attack.place import Place
from support.soak.processes import within

GONE_WITHIN = 30.0


class Left(NamedTuple):
    """A process; what: its command line."""

    pid: int
    what: str


def of(place: Place, *sessions: int) -> list[Left]:
    """Processes that belong to a place, or to sessions that were started for it."""
    return below(place.root, *sessions)


def below(folder: Path, *sessions: int) -> list[Left]:
    """Processes that belong to places below a folder."""
    return list(_of(os.fsencode(folder), set(sessions)))


def _of(root: bytes, sessions: set[int]) -> Iterator[Left]:
    for name in (entry.name for entry in os.scandir("/proc")):
        if not name.isdecimal() or int(name) == os.getpid():
            continue
        with suppress(OSError):
            state, session = _status(name)
            if state in "ZX":
                continue
            if session in sessions or _within(root, name):
                yield Left(int(name), _command(name))


def _status(name: str) -> tuple[str, int]:
    fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
    return fields[0], int(fields[3])


def _within(root: bytes, name: str) -> bool:
    folder = os.fsencode(Path("/proc", name, "cwd").readlink())
    if folder == root or folder.startswith(root + b"/"):
        return True
    place = Path("/proc", name)
    return root in (place / "environ").read_bytes() or root in (place / "cmdline").read_bytes()


def _command(name: str) -> str:
    return Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")[:200]


def gone(place: Place, *sessions: int, seconds: float | None = None) -> list[Left]:
    """Those that are left after some seconds, GONE_WITHIN unless told."""
    within(GONE_WITHIN if seconds is None else seconds, lambda: not of(place, *sessions))
    return of(place, *sessions)


def end(found: list[Left]) -> None:
    """SIGKILL."""
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
