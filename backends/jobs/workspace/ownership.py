"""Whose a workspace is: its folders are its user's alone."""

import os
import stat
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown

_OTHERS = 0o077
_WRITE = 0o022
_NAMES = frozenset({"jobs", "cache", "sessions", "edits", "leases", "keymap.json", "lines.json", "yank.txt"})
HOME = "LAYERWISE_HOME"


def open_root(root: Path) -> None:
    """Make a workspace's folder if need be, its user's alone. LayerwiseError if it is another user's, or if others
    could put another one in its place.

    A folder that holds other things too keeps its mode, but must not be open for others to write to.
    """
    check_above(root, HOME)
    if _is_shared(root):
        if root.stat().st_mode & _WRITE:
            raise _refusal(root, "may be written to by others", HOME)
        check_owner(root, HOME)
    else:
        own_folder(root, HOME)


def own_folder(folder: Path, variable: str = HOME) -> None:
    """Make a folder if need be, its user's alone. LayerwiseError if it is another user's, or cannot be made."""
    try:
        _make(folder)
        check_owner(folder, variable)
        mode = folder.stat().st_mode
        if mode & _OTHERS or mode & 0o700 != 0o700:
            folder.chmod(0o700)
        if folder.stat().st_mode & _OTHERS:
            raise _refusal(folder, "cannot be closed to others", variable)
    except OSError as error:
        raise _refusal(folder, f"cannot be made ({error.strerror})", variable) from error


def check_owner(folder: Path, variable: str = HOME) -> None:
    """Raise LayerwiseError if a folder, or a link in its place, is another user's. OSError if there is none."""
    if {folder.stat().st_uid, folder.lstat().st_uid} != {os.geteuid()}:
        raise _refusal(folder, "belongs to another user", variable)


def check_above(folder: Path, variable: str) -> None:
    """Raise LayerwiseError if others than root could put another folder in a folder's place, as sshd's StrictModes
    does: one above it is theirs, or may be written to by others and is not sticky, or a link on the way is theirs.

    The user's own group may write, since in many systems it has no other member.
    """
    trusted = {0, os.geteuid(), Path("/").stat().st_uid}
    real = Path(os.path.realpath(folder))
    for path in (*folder.absolute().parents, *real.parents):
        try:
            found = path.lstat()
        except OSError:
            continue
        if found.st_uid not in trusted or (not stat.S_ISLNK(found.st_mode) and _lets_others_rename(found)):
            raise _refusal(folder, f"is not safe, since others can rename what is in {shown(str(path))}", variable)


def _lets_others_rename(found: os.stat_result) -> bool:
    if found.st_mode & stat.S_ISVTX:
        return False
    return bool(found.st_mode & 0o002) or (bool(found.st_mode & 0o020) and found.st_gid not in (0, os.getegid()))


def _is_shared(root: Path) -> bool:
    """Whether others may open the folder, and it holds more than a workspace."""
    try:
        return bool(root.stat().st_mode & _OTHERS) and any(
            path.name not in _NAMES and not path.name.startswith("index.sqlite") for path in root.iterdir()
        )
    except OSError:
        return False


def _make(folder: Path) -> None:
    if folder.is_dir():
        return
    for path in reversed((folder, *folder.parents)):
        try:
            path.mkdir(0o700)
        except OSError as error:
            if not path.is_dir():
                raise error from None


def _refusal(folder: Path, what: str, variable: str) -> LayerwiseError:
    return LayerwiseError(f"{shown(str(folder))} {what}: set {variable} to a folder of yours")
