"""Folders, and files that refer to one another, that appear whole or not at all, whenever their writer is killed.

What is being written lies in a hidden folder beside its place, as `.<name>.<random>.tmp`.
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
_ledger: Path | None = None
_earlier: list[object] = []


def note_folders_in(ledger: Path) -> None:
    """Have `whole_folder` write down what this process makes, and replace what earlier ones of the same file made."""
    global _ledger, _earlier
    _ledger, _earlier = ledger, []
    with suppress(OSError, ValueError):
        _earlier = [json.loads(line) for line in ledger.read_text().splitlines()]


def _know_job() -> None:
    """Have the folders of a job's worker written down, and replace those of earlier attempts."""
    job = job_folder()
    if _ledger is None and job is not None:
        note_folders_in(job / FOLDERS)


@contextmanager
def written_together(path: Path) -> Iterator[Path]:
    """Yield an empty folder; when the block ends well, all files in it take their places beside `path`, its own last.

    One that is killed leaves the files of before, the new ones, or none at `path`: never a `path` that refers to others
    than its own. Files that are replaced keep their permissions, and links to them stay. OSError as the file system
    gives it, and whatever the block raises; all is as before then.
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
    """Yield an empty folder that becomes `path` when the block ends well, and is gone otherwise.

    A folder that is there is replaced where it is empty, where all that it holds is written anew or `ours` by its name,
    or where an earlier attempt of this job made it. merge: else each file takes its place in it, one after the other.
    FileExistsError without it. OSError as the file system gives it.
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
    """Move a file or folder to a name that is free, on another file system too. OSError as the file system gives it."""
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
    """Whether a folder may be replaced: all in it is `ours` by its name, or an earlier attempt of this job made it."""
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
    aside = folder.with_name(f"{folder.name}.before")  # never swept: it is the user's until the new one is there
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
    """Whether the system could let two folders take each other's names in one step (Linux, renameat2)."""
    import ctypes

    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:
        return False
    return bool(rename(_HERE, os.fsencode(one.absolute()), _HERE, os.fsencode(other.absolute()), _EXCHANGE) == 0)


def _as_usual(folder: Path) -> None:
    """Give what lies in it the permissions of anything new there; what can be run still can."""
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
    """Files on their way from a hidden folder to their places, the last one being what refers to the others."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[tuple[Path, Path]] = []
        self._aside: list[tuple[Path, Path]] = []
        self._cleared = False

    def prepare(self, file: Path, target: Path) -> None:
        """Bring a file to the file system of its place, with the permissions of what is there."""
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        make_folder(target.parent)
        _like(file, target)
        if file.stat().st_dev != target.parent.stat().st_dev:  # a link leads there
            from shutil import copy

            file = Path(copy(file, name_beside(target)))
        self._files.append((file, target))

    def clear(self) -> None:
        """Move what is in the way aside, first what refers to the others: from then on there is none of it."""
        self._cleared = True
        for _, target in reversed(self._files):
            if target.exists():
                self._aside.append((self._place_aside(target), target))
                target.replace(self._aside[-1][0])

    def _place_aside(self, target: Path) -> Path:
        """In the hidden folder, which is locked and from which it comes back if we are killed; else beside it."""
        home = self._folder.parent
        if not target.is_relative_to(home) or target.stat().st_dev != self._folder.stat().st_dev:
            return target.with_name(f".{target.name[:64]}.{os.urandom(8).hex()}.before")
        place = self._folder / ASIDE / target.relative_to(home)
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def put(self) -> None:
        """Rename, what refers to the others last."""
        for file, target in self._files:
            with placing(target):
                file.replace(target)

    def undo(self) -> None:
        """As before, what refers to the others last; a file without any was replaced in one step, the last of all."""
        for file, target in reversed(self._files):
            if self._cleared and not file.exists():
                target.unlink(missing_ok=True)
            file.unlink(missing_ok=True)
        for aside, target in reversed(self._aside):
            if aside.exists():
                aside.replace(target)

    def forget(self) -> None:
        """What was there before is not needed any more."""
        for aside, _ in self._aside:
            aside.unlink(missing_ok=True)


def _like(file: Path, before: Path) -> None:
    try:
        file.chmod(stat.S_IMODE(before.stat().st_mode))
    except FileNotFoundError:
        usual_mode(file)


def _note(folder: Path) -> None:
    """Write the folder down before it gets its name: whether that happened can be seen from its number."""
    if _ledger is not None:
        with _ledger.open("a") as stream:
            stream.write(json.dumps(_identity(folder)) + "\n")


def _identity(folder: Path) -> list[object]:
    """Device and number of a folder, and the names in it: with another file in it, it is not the one that was made."""
    found = folder.stat()
    return [found.st_dev, found.st_ino, sorted(os.fsencode(entry.name).hex() for entry in folder.iterdir())]
