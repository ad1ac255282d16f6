"""Reads files with a size limit, and writes files atomically."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO

from layerwise._tool.backends.errors import BadFile, placing
from layerwise._tool.backends.filesystem import regular
from layerwise._tool.backends.filesystem.permissions import make_folder, settle
from layerwise._tool.backends.filesystem.temporary import open_named
from layerwise._tool.backends.filesystem.unnamed_files import give_name, scratch_file, unnamed_file
from layerwise._tool.backends.limits.memory import limit
from layerwise._tool.backends.sizes import binary_size

if TYPE_CHECKING:
    from typing_extensions import Self

_MOST_LINKS = 40
_STEP = 1 << 20
MOST = 1 << 28  # limit in bytes for files that are read whole and parsed


def open_regular(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading without blocking on pipes. BadFile if it is anything else or cannot be opened."""
    try:
        fd = regular.open_regular(path, os.O_RDONLY | os.O_NOCTTY)
    except OSError as error:
        raise BadFile(path, error.strerror or str(error)) from error
    status = os.fstat(fd)
    if status.st_size or not _is_of_the_kernel(status):
        return fd
    os.close(fd)
    raise BadFile(path, "not a regular file")


def _is_of_the_kernel(status: os.stat_result) -> bool:
    """Return whether a file is in /proc, where some files never end, and some block when read."""
    try:
        return status.st_dev == Path("/proc").stat().st_dev
    except OSError:
        return False


def read_file(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """Return a file's bytes. BadFile if it cannot be read, is not a regular file, or has more than `most` bytes.

    most: None means as many as a process may hold, for files that are not parsed as text.
    """
    most = (limit() or sys.maxsize - 1) if most is None else most
    with os.fdopen(open_regular(path), "rb", buffering=0) as stream:
        try:
            size = os.fstat(stream.fileno()).st_size
            parts = [] if size > most else _parts(stream, size, most)
        except OSError as error:
            raise BadFile(path, error.strerror or str(error)) from None
    data = b"".join(parts)
    if max(size, len(data)) > most:
        raise BadFile(path, f"too large: more than the {binary_size(most)} that such a file may have")
    return data


def _parts(stream: Any, size: int, most: int) -> list[bytes]:
    """Yield the content of a file of that size, or that has grown; at most one part beyond `most`."""
    parts, done, step = [], 0, size + 1
    while done <= most and (part := stream.read(step)):
        parts.append(part)
        done, step = done + len(part), _STEP
    return parts


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open an invisible file; on success sync it and move it to `path`, on error discard it.

    The mode of a replaced file is kept, and symbolic links are followed. A device or pipe gets all content at the end.
    Raises OSError from the file system (a full disk, for example), Unwritable if no file can be created; `path` is
    then unchanged.
    """
    with placing(path):
        target = destination(path)
        draft = _Draft(target)
    try:
        yield draft.stream
        draft.stream.flush()
        with placing(path):
            draft.publish()
    except BaseException:
        draft.discard()
        raise


class _Draft:
    """The future `target`: without a name where the file system supports that, otherwise with a temporary name."""

    def __init__(self, target: Path) -> None:
        self._target, self._name = target, Path()
        self._is_special = _is_special(target)
        if self._is_special:
            from tempfile import gettempdir

            self.stream = scratch_file(Path(gettempdir()))
            return
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        unnamed = unnamed_file(target.parent)
        if unnamed is not None:
            self.stream = unnamed
            return
        fd, self._name = open_named(target)
        self.stream = os.fdopen(fd, "w+b")

    def publish(self) -> None:
        if self._is_special:
            _pour(self.stream, self._target)
        elif not self._name.name:
            publish(self.stream, self._target)
        else:
            os.fsync(self.stream.fileno())
            settle(self.stream.fileno(), self._target)
            self._name.replace(self._target)
        self.stream.close()

    def discard(self) -> None:
        try:
            self.stream.close()
        except OSError:  # unwritten data may hit a full disk
            pass
        finally:
            if self._name.name:
                self._name.unlink(missing_ok=True)


def publish(file: BinaryIO, target: Path) -> None:
    """Sync an unnamed file and move it to `target`; if the file system refuses links, copy its content.

    OSError if it cannot be written or cannot replace `target`, which is then unchanged.
    """
    file.flush()
    os.fsync(file.fileno())
    settle(file.fileno(), target)
    if not give_name(file, target):
        _copy(file, target)


def _copy(file: BinaryIO, target: Path) -> None:
    import shutil

    from layerwise._tool.backends.filesystem.direct_io import PacedStream

    fd, name = open_named(target)
    try:
        with os.fdopen(fd, "w+b") as stream:
            copy = PacedStream(stream)
            file.seek(0)
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            os.fsync(fd)
            settle(fd, target)
            name.replace(target)
    except BaseException:
        name.unlink(missing_ok=True)
        raise


def destination(path: str | os.PathLike[str]) -> Path:
    """Return the path that is written for `path`: the end of its symbolic links.

    PermissionError for another user's link in a world-writable folder; OSError for circular links.
    """
    target = Path(path)
    if _is_special(target):
        return target
    for _ in range(_MOST_LINKS):
        try:
            found = target.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return target
        if not stat.S_ISLNK(found.st_mode):
            return target
        folder = target.parent.stat()
        if folder.st_mode & 0o1002 == 0o1002 and found.st_uid not in (os.geteuid(), folder.st_uid):
            raise PermissionError(errno.EACCES, "a link of another user's is there", str(path))
        target = target.parent / target.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def _is_special(target: Path) -> bool:
    """Return whether the path is a device or pipe, which no file may replace."""
    try:
        mode = target.stat().st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISCHR(mode) or stat.S_ISFIFO(mode)


def _pour(stream: BinaryIO, target: Path) -> None:
    import shutil

    stream.seek(0)
    with target.open("wb", buffering=0) as opened:
        shutil.copyfileobj(stream, opened, 1 << 20)


class WholeOrNothing:
    """A context manager for writers: `close` on success, and always `abort`, which is then a no-op."""

    def close(self) -> None:
        """Finish writing and move the result into place."""
        raise NotImplementedError

    def abort(self) -> None:
        """Discard what is incomplete."""
        raise NotImplementedError

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            stack.callback(self.abort)
            if kind is None:
                self.close()


def atomic_write(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write `data` (text as UTF-8) to `path` atomically."""
    with atomic_writer(path) as stream:
        stream.write(data.encode() if isinstance(data, str) else data)


def write_named(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write a file that a user named, as `atomic_write` does, in a folder that is made where there is none."""
    make_folder(Path(path).parent)
    atomic_write(path, data)
