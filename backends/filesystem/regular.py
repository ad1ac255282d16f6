"""Opens files that others may have replaced: only regular ones, without blocking, read up to a limit.

Imports only the standard library.
"""

import errno
import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_OF_THE_PATH = frozenset({
    errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENODEV, errno.EACCES, errno.EPERM,
    errno.ENAMETOOLONG, errno.ETXTBSY,
})  # fmt: skip


class Damaged(OSError):
    """A path is not a readable regular file; `strerror` says what it is."""


def kind_of(mode: int) -> str:
    """Return the kind of file that a mode means, "" for a regular one."""
    return next((word for is_kind, word in _KINDS if is_kind(mode)), "")


def open_regular(
    path: str | os.PathLike[str], flags: int = os.O_RDONLY, mode: int = 0o600, *, own: bool = False
) -> int:
    """Open a regular file with `flags` of os.open; never blocks on a pipe, never opens a device.

    own: refuse symbolic links and files that another user made. Raises FileNotFoundError if there is nothing, Damaged
    if it is something else or may not be opened, any other OSError (no descriptors, a full disk) unchanged.
    """
    flags |= os.O_NONBLOCK | os.O_CLOEXEC | (os.O_NOFOLLOW if own else 0)
    try:
        if not flags & os.O_CREAT or os.path.lexists(path):
            _refuse(Path(path).stat(follow_symlinks=not own), path, own)
        fd = os.open(path, flags, mode)
    except ValueError as error:  # a name with a NUL
        raise Damaged(errno.EINVAL, str(error), str(path)) from error
    except OSError as error:
        if error.errno in _OF_THE_PATH:
            raise Damaged(error.errno, error.strerror, str(path)) from error
        raise
    try:
        _refuse(os.fstat(fd), path, own)
    except Damaged:
        os.close(fd)
        raise
    return fd


def _refuse(status: os.stat_result, path: object, own: bool) -> None:
    kind = kind_of(status.st_mode)
    if kind:
        raise Damaged(errno.EINVAL, f"is {kind}, not a regular file", str(path))
    if own and status.st_uid != os.geteuid():
        raise Damaged(errno.EPERM, "belongs to another user", str(path))


def read_regular(path: str | os.PathLike[str], most: int, *, own: bool = False) -> bytes:
    """Return all of a regular file. Raises like `open_regular`, and Damaged if it has more than `most` bytes."""
    fd = open_regular(path, own=own)
    try:
        size = os.fstat(fd).st_size
        data = b"" if size > most else _read(fd, 0, most + 1)
    finally:
        os.close(fd)
    if size > most or len(data) > most:
        raise Damaged(errno.EFBIG, f"has {size:,} bytes, more than {most:,}", str(path))
    return data


def read_from(path: str | os.PathLike[str], offset: int, most: int, *, own: bool = True) -> bytes:
    """Return at most `most` bytes of a regular file from `offset`; a negative offset counts from its end.

    Raises like `open_regular`.
    """
    fd = open_regular(path, own=own)
    try:
        return _read(fd, offset if offset >= 0 else max(0, os.fstat(fd).st_size + offset), most)
    finally:
        os.close(fd)


def _read(fd: int, offset: int, most: int) -> bytes:
    parts: list[bytes] = []
    while most > 0 and (part := os.pread(fd, min(most, 1 << 20), offset)):
        parts.append(part)
        offset += len(part)
        most -= len(part)
    return b"".join(parts)


def next_data(fd: int, place: int) -> int:
    """Return the next offset with data, at `place` or after a hole; the file's end if there is none."""
    size = os.fstat(fd).st_size  # read before the search: what is appended later is not a hole
    try:
        return os.lseek(fd, place, os.SEEK_DATA) if place < size else place
    except OSError as error:
        return size if error.errno == errno.ENXIO else place
