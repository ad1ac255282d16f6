"""Named temporary files and folders: recorded by their job, and distinguished from the user's by name and lock.

The name ends in random digits and their digest, and the writer holds an flock, which the kernel releases when it
dies: the next writer in the folder removes unlocked ones. A job's worker also records each name before creating it,
and the record is processed when the job ends, is retried or pruned.
"""

import fcntl
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NAME = r"(?s:(\..{0,24}\.[0-9a-f]{16})([0-9a-f]{16})\.tmp)"
_LONGEST_RECORD = 64 << 20
_DIES_WITHIN = 1.0
ASIDE = ".layerwise-before"  # in a temporary folder: files that were moved out of the way of its own
_FILE = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
_record: Path | None = None
_swept: set[Path] = set()
_aside: "tuple[TemporaryFolder, str | None] | None" = None


def record_in(record: Path | None) -> None:
    """From now on, record in this file the names that `note` gets."""
    global _record
    _record = record


def job_folder() -> Path | None:
    """Return the folder of the job that this process works for."""
    return None if _record is None else _record.parent


def note(path: Path) -> None:
    """Record a temporary file that this process's job will create; nothing outside jobs. Raises OSError."""
    if _record is None:
        return
    fd = os.open(_record, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, b"\0%s\0" % os.fsencode(path.absolute()))
    finally:
        os.close(fd)


def name_beside(target: Path) -> Path:
    """Return a new name for a temporary file of `target`, recorded. Raises OSError."""
    head = f".{target.name[:24]}.{os.urandom(8).hex()}"
    path = target.with_name(f"{head}{_digest(head)}.tmp")
    note(path)
    return path


def _digest(head: str) -> str:
    from hashlib import blake2b

    return blake2b(os.fsencode(head), digest_size=8, key=b"layerwise temporary").hexdigest()


def is_ours(name: str) -> bool:
    """Return whether `name_beside` made this name."""
    found = re.fullmatch(_NAME, name)
    return found is not None and _digest(found[1]) == found[2]


def open_named(target: Path) -> tuple[int, Path]:
    """Create a temporary file next to `target`, locked while its descriptor is open. Raises OSError."""
    sweep_once(target.parent)
    while True:
        path = name_beside(target)
        fd = os.open(path, _FILE | os.O_CREAT | os.O_EXCL, 0o600)
        if _held(fd, path):
            return fd, path


class TemporaryFolder:
    """A private folder next to `target`, until it is renamed to it. Raises OSError."""

    def __init__(self, target: Path) -> None:
        sweep_once(target.parent)
        while True:
            self.path = name_beside(target)
            self.path.mkdir(0o700)
            try:
                self._fd = os.open(self.path, _FOLDER)
            except FileNotFoundError:  # swept before it could be locked
                continue
            if _held(self._fd, self.path):
                return

    def discard(self) -> None:
        """Remove it, unless it was renamed."""
        if self._fd >= 0:
            from shutil import rmtree

            rmtree(self.path, ignore_errors=True)
            self._close()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        os.close(fd)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a folder among the system's temporary files, removed at the end. Raises OSError."""
    from tempfile import gettempdir

    folder = TemporaryFolder(Path(gettempdir()) / "layerwise")
    try:
        yield folder.path
    finally:
        folder.discard()


def keep_aside() -> None:
    """Give this process and its children a folder for temporary files that is removed with its job.

    If the system has none, they go where they would have gone anyway.
    """
    global _aside
    usual = os.environ.get("TMPDIR")
    with suppress(OSError):
        _aside = TemporaryFolder(Path(usual or "/tmp") / "layerwise"), usual
        os.environ["TMPDIR"] = str(_aside[0].path.absolute())
        if "tempfile" in sys.modules:
            vars(sys.modules["tempfile"])["tempdir"] = None


def environment_of_user() -> dict[str, str]:
    """Return this process's environment with the user's own folder for temporary files."""
    found = dict(os.environ)
    if _aside is not None:
        del found["TMPDIR"]
        found |= {"TMPDIR": _aside[1]} if _aside[1] is not None else {}
    return found


def _held(fd: int, path: Path) -> bool:
    """Lock what was just created; False if it was swept before, and `fd` is then closed."""
    with suppress(OSError):  # no locks on this file system: then only the job sweeps it
        fcntl.flock(fd, fcntl.LOCK_EX)
    if _is(fd, path):
        return True
    os.close(fd)
    return False


def lock(fd: int) -> None:
    """Lock a file that will get a temporary name."""
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def sweep_once(folder: Path) -> None:
    """Call `sweep` on a folder the first time this process writes there."""
    if folder not in _swept:
        _swept.add(folder)
        sweep(folder)


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders of dead writers from a folder. Ambiguous ones stay."""
    with suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if entry.name.endswith(".tmp") and is_ours(entry.name)]:
            remove_dead(folder / name)


def remove_dead(path: Path, within: float = 0.0) -> None:
    """Remove a temporary file or folder of this user if nobody holds it, now or `within` some seconds."""
    with suppress(OSError):
        found = path.lstat()
        is_folder = stat.S_ISDIR(found.st_mode)
        if found.st_uid != os.geteuid() or not (is_folder or stat.S_ISREG(found.st_mode)):
            return
        fd = os.open(path, _FOLDER if is_folder else _FILE)
        try:
            _lock_within(fd, within)
            if _is(fd, path):
                _give_back(path)
                _remove(path)
        finally:
            os.close(fd)


def _give_back(folder: Path) -> None:
    """Finish a dead writer's replacement of files: restore the old ones, or, if some of the new ones are in place, move
    the rest. OSError; nothing that has appeared since is replaced.
    """
    before = folder / ASIDE
    if not before.is_dir():
        return
    old = {file: folder.parent / file.relative_to(before) for file in _files(before)}
    new = {file: folder.parent / file.relative_to(folder) for file in _files(folder) if before not in file.parents}
    for moves in (old, new):
        if not any(map(os.path.lexists, moves.values())):
            for file, target in moves.items():
                file.replace(target)
            return


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _lock_within(fd: int, seconds: float) -> None:
    """Lock it once its holders are dead: a killed one may take a moment. OSError if they are not."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(0.005)


def sweep_record(record: Path) -> None:
    """Remove what a record names: always in its own folder, elsewhere if the writer is dead. Needs the job's lock.

    The record itself stays: on a full disk, freeing its block could let another writer make the next attempt fail.
    """
    try:
        fd = os.open(record, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    with os.fdopen(fd, "rb") as stream:
        facts = os.fstat(fd)
        if facts.st_uid != os.geteuid() or not stat.S_ISREG(facts.st_mode):
            return
        names = set(stream.read(_LONGEST_RECORD).split(b"\0")) - {b""}
    for path in (Path(os.fsdecode(name)) for name in names):
        if path.is_relative_to(record.parent):
            _remove(path)
        elif is_ours(path.name):
            remove_dead(path, _DIES_WITHIN)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            from shutil import rmtree

            rmtree(path)
        else:
            path.unlink()
