"""File permissions: a workspace is private to its owner, files a user asked for get the user's usual mode.

Workers keep `ALONE` as their umask, so that files of native libraries are private too; they are told the user's.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

ALONE = 0o077
_ACL = "system.posix_acl_access"
_given: int | None = None  # the user's umask, if this process has `ALONE`
_roots: set[str] = set()


def keep_alone(given: int | None) -> None:
    """Make new files of this process private. given: the user's umask, None for the current one."""
    global _given
    before = os.umask(ALONE)
    if given is not None or _given is None:
        _given = before if given is None else given


def given_umask() -> int | None:
    """Return what `keep_alone` was given, or found; None if this process has the user's umask."""
    return _given


def user_umask() -> int:
    """Return the umask of the user who runs the command."""
    if _given is not None:
        return _given
    with suppress(OSError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line[6:], 8)
    mask = os.umask(ALONE)  # no other thread may create a world-readable file meanwhile
    os.umask(mask)
    return mask


def keep_private(root: Path) -> None:
    """Treat everything below `root` as private."""
    _roots.update((f"{root.absolute()}{os.sep}", f"{os.path.realpath(root)}{os.sep}"))


def is_private(path: Path) -> bool:
    """Return whether a path is in a workspace."""
    whole = os.path.abspath(path)  # noqa: PTH100 (absolute() keeps "..")
    return any(whole.startswith(root) for root in _roots)


def usual_mode(path: Path) -> None:
    """Give a file the permissions of a newly created one: temporary files and onnx's external data are private."""
    path.chmod(_file_mode(path))


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents with the usual permissions. OSError like mkdir's."""
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
    """Give a folder the permissions of a newly created one; bits inherited from its parent stay."""
    mode = ALONE if is_private(folder) else user_umask()
    folder.chmod(folder.stat().st_mode & 0o7000 | 0o777 & ~mode)


def settle(fd: int, target: Path) -> None:
    """Copy mode, group and owner of `target` to an open file as far as possible; the usual mode if there is none."""
    try:
        old = target.lstat()
    except OSError:
        old = None
    if old is None or not stat.S_ISREG(old.st_mode) or is_private(target):
        os.fchmod(fd, _file_mode(target))
        return
    mode = old.st_mode & 0o777
    if not _gets(fd, -1, old.st_gid):
        mode &= ~0o070 | (mode & 0o007) << 3  # a different group may do no more than others
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
