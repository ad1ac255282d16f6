"""Errors that a user can act on."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from layerwise._tool.backends.text import shown, shown_lines

_PLACE = frozenset({
    errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EROFS, errno.ELOOP, errno.ENAMETOOLONG,
})  # fmt: skip


_SCARCE = {
    errno.EMFILE: "too many files are open (see ulimit -n)",
    errno.ENFILE: "too many files are open on this machine",
    errno.EAGAIN: "no more processes or threads may be started (see ulimit -u)",
    errno.ENOMEM: "memory ran out",
}

# What native code says of the machine in errors of its own, and the number of the system's error behind it.
_SCARCE_TEXTS = {
    "pthread_create failed": errno.EAGAIN,
    "Resource temporarily unavailable": errno.EAGAIN,
    "can't start new thread": errno.EAGAIN,
    "Too many open files": errno.EMFILE,
}
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class LayerwiseError(Exception):
    """Something the user can act on. Shown as one message, never as a traceback; names in it are safe to print."""

    exit_code = 1

    def __str__(self) -> str:
        return shown_lines(super().__str__())


class UsageError(LayerwiseError):
    """The request itself is wrong: an option, a name, a file that does not fit."""

    exit_code = 2


class MissingDependency(LayerwiseError):
    """A package, provider or native library that was asked for is not there; the message says what to install."""


class BadFile(LayerwiseError):
    """A file cannot be read as what it should be. The message names the file and the reason."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{shown(str(path))}: {reason}")
        self.path = str(path)
        self.reason = reason


class NoArray(LayerwiseError, ValueError):
    """Numbers in lists do not make an array."""


class Unwritable(LayerwiseError, OSError):
    """There can be no file at a path: no folder, no permission. Full disks and the like stay plain OSErrors."""

    def __init__(self, path: object, error: OSError) -> None:
        OSError.__init__(self, error.errno, error.strerror, str(path))

    def __str__(self) -> str:
        return f"{shown(str(self.filename))} cannot be written: {self.strerror}"


def refusal(error: BaseException) -> str:
    """What the system refused, as a sentence; "" where an error is no refusal that says what it is about."""
    if isinstance(error, RuntimeError) and (scarce := _scarce_number(error)):
        return _SCARCE[scarce]
    if isinstance(error, MemoryError):
        return "memory ran out"
    if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
        return f"there is no room on the disk for what is written ({error.strerror})"
    if isinstance(error, FileNotFoundError) and error.filename is None:
        return "the current folder was removed: change to another"
    if not isinstance(error, OSError) or (error.filename is None and error.errno not in _SCARCE):
        return ""
    words = _SCARCE.get(error.errno or 0, error.strerror or str(error))
    return words if error.filename is None or error.errno in _SCARCE else f"{shown(str(error.filename))}: {words}"


def is_scarce(error: OSError) -> bool:
    """Whether it is this process that lacks something (descriptors, memory), not the file."""
    return error.errno in _SCARCE


def raise_scarce(error: BaseException) -> None:
    """Raise an OSError where an error, of native code too, says that the machine gives no more threads or files.

    For places that turn errors into a LayerwiseError about a model: who judges by those would call a sound model bad.
    """
    if scarce := _scarce_number(error):
        raise OSError(scarce, _SCARCE[scarce]) from error


def _scarce_number(error: BaseException) -> int:
    number = error.errno if isinstance(error, OSError) else None
    if number in _SCARCE:
        return number or 0
    text = str(error)[:2000]
    return next((number for words, number in _SCARCE_TEXTS.items() if words in text), 0)


@contextmanager
def placing(path: object) -> Iterator[None]:
    """Raise Unwritable where the system says that no file can be made at `path`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _PLACE:
            raise
        raise Unwritable(path, error) from None
