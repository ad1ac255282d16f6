"""A second user of the machine, for tests that run as root."""

import os
import shutil
import signal
import socket
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.writers import forked

OTHER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user too")


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that every user can reach, unlike pytest's own."""
    place = Path(tempfile.mkdtemp(prefix="open"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def as_other(work: Callable[[], int]) -> int:
    """What `work` returns in a fork that belongs to the other user."""

    def drop() -> int:
        os.setgroups([])
        os.setresgid(OTHER, OTHER, OTHER)
        os.setresuid(OTHER, OTHER, OTHER)
        return work()

    return forked(drop)


def entries(root: Path) -> list[Path]:
    """The folder and all that is in it, links not followed."""
    return [root, *(Path(parent, name) for parent, *lists in os.walk(root) for names in lists for name in names)]


def loose(root: Path) -> list[str]:
    """What is open to others by its own mode."""
    found = [(path, path.lstat().st_mode) for path in entries(root)]
    return [f"{stat.filemode(mode)} {path}" for path, mode in found if mode & 0o077 and not stat.S_ISLNK(mode)]


def reached(paths: list[Path]) -> list[str]:
    """What this process can do with the paths."""
    done = []
    for path in paths:
        for word, attempt in _ATTEMPTS.items():
            try:
                attempt(path)
            except OSError:
                continue
            done.append(f"{word} {path}")
    return done


def _connect(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as asked:
        asked.settimeout(1.0)
        asked.connect(os.fspath(path))


_ATTEMPTS: dict[str, Callable[[Path], object]] = {
    "stat": lambda path: path.lstat(),
    "open": lambda path: os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK)),
    "write": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)),
    "list": os.listdir,
    "enter": os.chdir,
    "plant in": lambda path: (path / "planted").mkdir(),
    "plant a file in": lambda path: (path / "planted.json").write_text("{}"),
    "link from": lambda path: os.link(path, f"/tmp/stolen-{os.getpid()}"),
    "rename": lambda path: path.rename(path.with_name("renamed")),
    "remove": os.unlink,
    "remove folder": os.rmdir,
    "change": lambda path: path.chmod(0o777),
    "touch": os.utime,
    "connect to": _connect,
}  # fmt: skip


def signalled(pids: list[int]) -> list[int]:
    """The processes that this one may signal, trace or look into."""
    found = []
    for pid in pids:
        for attempt in (
            lambda: os.kill(pid, signal.SIGCONT),  # noqa: B023
            lambda: Path(f"/proc/{pid}/environ").read_bytes(),  # noqa: B023
            lambda: list(Path(f"/proc/{pid}/fd").iterdir()),  # noqa: B023
            lambda: os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY)),  # noqa: B023
        ):
            try:
                attempt()
                found.append(pid)
            except OSError:
                continue
    return found
