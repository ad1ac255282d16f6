"""Writes folders, and sets of files that refer to one another, atomically, even if the writer is killed.

Unfinished data is in a hidden folder next to the target, named `.<name>.<random>.tmp`.
"""

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from layerwise._tool.backends.errors import placing
from layerwise._tool.backends.filesystem.permissions import make_folder, usual_folder_mode, usual_mode
from layerwise._tool.backends.filesystem.temporary import ASIDE, TemporaryFolder, job_folder, name_beside

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
FOLDERS = "folders.jsonl"  # in the folder of a job: see backends.jobs.folder
_record: Path | None = None
_earlier: list[object] = []


def note_folders_in(record: Path) -> None:
    """Make `whole_folder` record what this process makes, and replace what earlier owners of the record made."""
    global _record, _earlier
    _record, _earlier = record, []
    with suppress(OSError, ValueError):
        _earlier = [json.loads(line) for line in record.read_text().splitlines()]


def _know_job() -> None:
    """Record the folders of a job's worker, and replace those of earlier attempts."""
    job = job_folder()
    if _record is None and job is not None:
        note_folders_in(job / FOLDERS)


@contextmanager
def written_together(path: Path) -> Iterator[Path]:
    """Yield an empty folder; on success all files in it move next to `path`, `path` itself last.

    If killed, either the old files, the new ones, or none are at `path`: `path` never refers to files that do not
    belong to it. Replaced files keep their permissions, and links to them stay. OSError from the file system, and
    whatever the block raises; everything is then unchanged.
    """
    with _hidden(Path(os.path.realpath(path))) as folder:
        yield folder
        own = folder / path.name
        files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file != own]
        _put(folder, own, path, [(file, path.parent / file.relative_to(folder)) for file in files])


@contextmanager
def whole_folder(
    path: Path, *, ours: Callable[[str], bool] = lambda name: False, merge: bool = False
) -> Iterator[Path]:
    """Yield an empty folder that becomes `path` on success and is removed otherwise.

    An existing folder is replaced if it is empty, if everything in it is rewritten or `ours` by name, or if an earlier
    attempt of this job made it. Otherwise, with merge, each file is moved into it, one by one; without,
    FileExistsError. OSError from the file system.
    """
    _know_job()
    path = Path(os.path.realpath(path))
    if path.exists() and not (merge and path.is_dir()) and not is_free(path, ours):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
    with _hidden(path) as folder:
        yield folder
        _as_usual(folder)
        names = {entry.name for entry in folder.iterdir()}
        if not path.exists() or is_free(path, lambda name: name in names or ours(name)):
            _become(folder, path)
        else:
            _merge(folder, path)


def move_whole(source: Path, target: Path) -> None:
    """Move a file or folder to an unused name, across file systems too. OSError from the file system."""
    try:
        source.rename(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with _hidden(target) as folder:
            from shutil import move

            move(source, folder / target.name)
            (folder / target.name).rename(target)


def is_free(path: Path, ours: Callable[[str], bool] = lambda name: False) -> bool:
    """Return whether a folder may be replaced: all in it is `ours` by name, or from an earlier attempt of this job."""
    _know_job()
    if not path.is_dir():
        return not path.exists()
    return all(ours(entry.name) for entry in path.iterdir()) or _identity(path) in _earlier


@contextmanager
def _hidden(path: Path) -> Iterator[Path]:
    with placing(path):
        folder = TemporaryFolder(path)
    try:
        yield folder.path
    finally:
        folder.discard()


def _become(folder: Path, path: Path) -> None:
    _note(folder)
    _like_folder(folder, path)
    if not path.exists() or not any(path.iterdir()):
        with placing(path):
            folder.replace(path)
        return
    if _exchanged(folder, path):
        return
    aside = folder.with_name(f"{folder.name}.before")  # not swept: it belongs to the user until the new one is in place
    try:
        path.replace(aside)
        folder.replace(path)
    except BaseException:
        if aside.exists() and not path.exists():
            aside.replace(path)
        raise
    from shutil import rmtree

    rmtree(aside, ignore_errors=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Return whether two folders could be swapped atomically (Linux, renameat2)."""
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_HERE, os.fsencode(one.absolute()), _HERE, os.fsencode(other.absolute()), _EXCHANGE) == 0)


def _as_usual(folder: Path) -> None:
    """Set the permissions of newly created files on the content; executables stay executable."""
    for path in folder.rglob("*"):
        if path.is_dir():
            usual_folder_mode(path)
        elif path.is_file() and not path.is_symlink():
            can_run = bool(path.stat().st_mode & 0o100)
            usual_mode(path)
            mode = stat.S_IMODE(path.stat().st_mode)
            path.chmod(mode | (mode & 0o444) >> 2 if can_run else mode)


def _like_folder(folder: Path, before: Path) -> None:
    try:
        old = before.stat()
    except FileNotFoundError:
        usual_folder_mode(folder)
        return
    with suppress(OSError):
        os.chown(folder, old.st_uid, old.st_gid)
    folder.chmod(stat.S_IMODE(old.st_mode))


def _merge(folder: Path, path: Path) -> None:
    for file in sorted(folder.rglob("*")):
        target = path / file.relative_to(folder)
        if file.is_dir():
            make_folder(target)
        else:
            _like(file, target)
            file.replace(target)


def _put(folder: Path, own: Path, path: Path, others: list[tuple[Path, Path]]) -> None:
    moves = _Moves(folder)
    try:
        for file, target in [*others, (own, path)]:
            moves.prepare(file, Path(os.path.realpath(target)))
        if others:
            moves.clear()
        moves.put()
    except BaseException:
        moves.undo()
        raise
    moves.forget()


class _Moves:
    """Files being moved from a hidden folder to their targets, last the one that refers to the others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[tuple[Path, Path]] = []
        self._aside: list[tuple[Path, Path]] = []
        self._cleared = False

    def prepare(self, file: Path, target: Path) -> None:
        """Copy a file to its target's file system, with the permissions of the existing file."""
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        make_folder(target.parent)
        _like(file, target)
        if file.stat().st_dev != target.parent.stat().st_dev:  # through a link
            from shutil import copy

            file = Path(copy(file, name_beside(target)))
        self._files.append((file, target))

    def clear(self) -> None:
        """Move existing targets aside, first the one that refers to the others: from then on it does not exist."""
        self._cleared = True
        for _, target in reversed(self._files):
            if target.exists():
                self._aside.append((self._place_aside(target), target))
                target.replace(self._aside[-1][0])

    def _place_aside(self, target: Path) -> Path:
        """Return a name in the hidden folder, restored from if we are killed; otherwise one next to the target."""
        home = self._folder.parent
        if not target.is_relative_to(home) or target.stat().st_dev != self._folder.stat().st_dev:
            return target.with_name(f".{target.name[:64]}.{os.urandom(8).hex()}.before")
        place = self._folder / ASIDE / target.relative_to(home)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def put(self) -> None:
        """Rename all files to their targets, last the one that refers to the others."""
        for file, target in self._files:
            with placing(target):
                file.replace(target)

    def undo(self) -> None:
        """Restore everything, last the file that refers to the others."""
        for file, target in reversed(self._files):
            if self._cleared and not file.exists():
                target.unlink(missing_ok=True)
            file.unlink(missing_ok=True)
        for aside, target in reversed(self._aside):
            if aside.exists():
                aside.replace(target)

    def forget(self) -> None:
        """Discard the replaced files."""
        for aside, _ in self._aside:
            aside.unlink(missing_ok=True)


def _like(file: Path, before: Path) -> None:
    try:
        file.chmod(stat.S_IMODE(before.stat().st_mode))
    except FileNotFoundError:
        usual_mode(file)


def _note(folder: Path) -> None:
    """Record the folder before it is renamed: its inode shows whether that happened."""
    if _record is not None:
        with _record.open("a") as stream:
            stream.write(json.dumps(_identity(folder)) + "\n")


def _identity(folder: Path) -> list[object]:
    """Return device and inode of a folder, and the names in it: with another file in it, it is not the one we made."""
    found = folder.stat()
    return [found.st_dev, found.st_ino, sorted(os.fsencode(entry.name).hex() for entry in folder.iterdir())]
