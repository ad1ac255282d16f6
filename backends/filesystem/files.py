"""Reading files within bounds, and writing them so that nothing half-written is ever taken for whole."""

import errno
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from layerwise._tool.backends.errors import BadFile, LayerwiseError, placing
from layerwise._tool.backends.filesystem import regular
from layerwise._tool.backends.filesystem.permissions import settle
from layerwise._tool.backends.filesystem.temporary import open_named
from layerwise._tool.backends.filesystem.unnamed_files import give_name, scratch_file, unnamed_file
from layerwise._tool.backends.limits.memory import limit
from layerwise._tool.backends.sizes import binary_size

_MOST_LINKS = 40
_STEP = 1 << 20
MOST = 1 << 28  # bytes of a file that is read whole and parsed


def open_regular(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading; never waits for a pipe. BadFile for anything else, and where it cannot be."""
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
    """Whether a file is one of /proc, some of which never end, and some of which wait when they are read."""
    try:
        return status.st_dev == Path("/proc").stat().st_dev
    except OSError:
        return False


def read_file(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """Return a file's bytes. BadFile: it cannot be read, is no regular file, or has more than `most` bytes.

    most: None: as many as a process may hold, for files that no text is made of.
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
    """What is in a file of that size, or that has grown; no more than a part beyond `most`."""
    parts, done, step = [], 0, size + 1
    while done <= most and (part := stream.read(step)):
        parts.append(part)
        done, step = done + len(part), _STEP
    return parts


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that is nowhere to be seen; on success sync it and put it in place of `path`, on error drop it.

    What is replaced leaves its mode; a symbolic link stays one. A device or a pipe is given all of it at the end.
    Raises OSError as the file system gives it (a full disk among them), Unwritable where no file can be; `path` is
    then as it was before.
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
    """What is to become `target`: without a name where the file system can, else with a temporary one."""

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
        except OSError:  # what was not written yet finds the disk full
            pass
        finally:
            if self._name.name:
                self._name.unlink(missing_ok=True)


def publish(file: BinaryIO, target: Path) -> None:
    """Sync an unnamed file and put it in place of `target`; where links are refused its content is copied.

    OSError if it cannot be written out or cannot replace what is there; `target` is then as it was before.
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
    """Where a file is written that is to be `path`: at the end of symbolic links.

    PermissionError at a link that somebody else left in a folder that all may write to; OSError where links go round.
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
    """Whether a device or a pipe is there, which no file may replace."""
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
    """A context manager for writers: `close` when all went well, and in any case `abort`, which then finds nothing."""

    def close(self) -> None:
        """Finish what is written and put it in place."""
        raise NotImplementedError

    def abort(self) -> None:
        """Leave nothing half-written behind."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with ExitStack() as stack:
            stack.callback(self.abort)
            if kind is None:
                self.close()


def atomic_write(path: str | os.PathLike[str], data: bytes | str) -> None:
    """Write `data` (text as UTF-8) to `path` whole or not at all."""
    with atomic_writer(path) as stream:
        stream.write(data.encode() if isinstance(data, str) else data)


def user_path(text: str) -> Path:
    """The path a user typed: `~` is the home folder, or itself where there is no such user."""
    return Path(os.path.expanduser(text.strip()))  # noqa: PTH111 (Path.expanduser raises)


def current_folder() -> Path:
    """The folder that relative paths start from. Raises LayerwiseError where it was removed."""
    try:
        return Path.cwd()
    except OSError as error:
        raise LayerwiseError(f"the current folder cannot be used ({error.strerror}): change to another") from error


def absolute_path(path: Path) -> Path:
    """The path from the root; as it is where the current folder was removed, so that there is no such file."""
    try:
        return path.absolute()
    except OSError:
        return path
