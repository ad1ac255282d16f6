"""Whose the files are: a workspace is its owner's alone, what a user asked for has the mode of any file of his.

Workers keep `ALONE` as their umask, so that what native libraries write is right too; they are told the user's.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

ALONE = 0o077
_ACL = "system.posix_acl_access"
_given: int | None = None  # the user's umask, where this process has `ALONE`
_roots: set[str] = set()


def keep_alone(given: int | None) -> None:
    """Let what this process makes be its user's alone. given: the user's umask, None for the present one."""
    global _given
    before = os.umask(ALONE)
    if given is not None or _given is None:
        _given = before if given is None else given


def given_umask() -> int | None:
    """What `keep_alone` was given, or found; None where this process has the user's umask."""
    return _given


def user_umask() -> int:
    """The umask of the user whose command this is."""
    if _given is not None:
        return _given
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line[6:], 8)
    mask = os.umask(ALONE)  # no other thread may make a file meanwhile that is anybody's
    os.umask(mask)
    return mask


def keep_private(root: Path) -> None:
    """Make what is written below `root` its owner's alone."""
    _roots.update((f"{root.absolute()}{os.sep}", f"{os.path.realpath(root)}{os.sep}"))


def is_private(path: Path) -> bool:
    """Whether a path lies in a workspace."""
    whole = os.path.abspath(path)  # noqa: PTH100 (absolute() keeps "..")
    return any(whole.startswith(root) for root in _roots)


def usual_mode(path: Path) -> None:
    """Give a file the permissions of any new one there: temporary files, and onnx's external data, are the owner's."""
    path.chmod(_file_mode(path))


def make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, with the permissions of any new one. OSError like mkdir's."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        if folder.parent == folder:
            break
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir(0o700, exist_ok=True)
        usual_folder_mode(path)


def usual_folder_mode(folder: Path) -> None:
    """Give a folder the permissions of any new one there; bits inherited from the one above stay."""
    mode = ALONE if is_private(folder) else user_umask()
    folder.chmod(folder.stat().st_mode & 0o7000 | 0o777 & ~mode)


def settle(fd: int, target: Path) -> None:
    """Give an open file what `target` has, mode, group and owner as far as may be; the usual mode if there is none."""
    try:
        old = target.lstat()
    except OSError:
        old = None
    if old is None or not stat.S_ISREG(old.st_mode) or is_private(target):
        os.fchmod(fd, _file_mode(target))
        return
    mode = old.st_mode & 0o777
    if not _gets(fd, -1, old.st_gid):
        mode &= ~0o070 | (mode & 0o007) << 3  # another group may do no more than anybody
    _gets(fd, old.st_uid, -1)
    with suppress(OSError, AttributeError):
        os.setxattr(fd, _ACL, os.getxattr(target, _ACL))
    os.fchmod(fd, mode)


def _gets(fd: int, uid: int, gid: int) -> bool:
    now = os.fstat(fd)
    if uid in (-1, now.st_uid) and gid in (-1, now.st_gid):
        return True
    try:
        os.fchown(fd, uid, gid)
    except OSError:
        return False
    return True


def _file_mode(path: Path) -> int:
    return 0o600 if is_private(path) else 0o666 & ~user_umask()
