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

# Error messages of native code about scarce system resources, and the matching errno.
_SCARCE_TEXTS = {
    "pthread_create failed": errno.EAGAIN,
    "Resource temporarily unavailable": errno.EAGAIN,
    "can't start new thread": errno.EAGAIN,
    "Too many open files": errno.EMFILE,
}
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class LayerwiseError(Exception):
    """An error that the user can act on, shown as one message, never as a traceback; names in it are escaped."""

    exit_code = 1

    def __str__(self) -> str:
        return shown_lines(super().__str__())


class UsageError(LayerwiseError):
    """The request itself is wrong: an option, a name, a file that does not match."""

    exit_code = 2


class MissingDependency(LayerwiseError):
    """A requested package, provider or native library is missing; the message says what to install."""


class BadFile(LayerwiseError):
    """A file is not what it should be. The message names the file and the reason."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{shown(str(path))}: {reason}")
        self.path = str(path)
        self.reason = reason


class NoArray(LayerwiseError, ValueError):
    """Nested lists of numbers do not form an array."""


class Unwritable(LayerwiseError, OSError):
    """No file can be created at a path: no folder, no permission. Full disks and the like stay plain OSErrors."""

    def __init__(self, path: object, error: OSError) -> None:
        OSError.__init__(self, error.errno, error.strerror, str(path))

    def __str__(self) -> str:
        return f"{shown(str(self.filename))} cannot be written: {self.strerror}"


def refusal(error: BaseException) -> str:
    """Return what the system refused, as a sentence; "" if the error is not a refusal that names its cause."""
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
    """Return whether this process lacks a resource (descriptors, memory), as opposed to a problem with the file."""
    return error.errno in _SCARCE


def raise_scarce(error: BaseException) -> None:
    """Raise an OSError if an error, also from native code, means that the system has no more threads or files to give.

    For code that turns errors into a LayerwiseError about a model: otherwise it would blame a sound model.
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
    """Raise Unwritable if the system reports that no file can be created at `path`."""
    try:
        yield
    except OSError as error:
        if error.errno not in _PLACE:
            raise
        raise Unwritable(path, error) from None


@contextmanager
def writing(what: str) -> Iterator[None]:
    """Raise LayerwiseError, with the system's reason, if `what` (safe to show) cannot be written."""
    try:
        yield
    except OSError as error:
        raise LayerwiseError(f"{what} cannot be written: {error.strerror or error}") from error
