"""Reading files within bounds, and writing them so that nothing half-written is ever taken for whole."""

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from backends.errors import BadFile, placing
from backends.memory import limit
from backends.sizes import binary_size

_STEP = 1 << 20
MOST = 1 << 28  # bytes of a file that is read whole and parsed


def open_regular(path: str | os.PathLike[str]) -> int:
    """Open a regular file for reading; never waits for a pipe. BadFile for anything else, and where it cannot be."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadFile(path, reason) from error
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) and not (status.st_size == 0 and _is_of_the_kernel(status)):
        return fd
    os.close(fd)
    raise BadFile(path, "Is a directory" if stat.S_ISDIR(status.st_mode) else "not a regular file")


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
    """Open a temporary file beside `path`; on success sync it and rename it to `path`, on error remove it.

    Raises OSError as the file system gives it (a full disk among them), Unwritable where no file can be; `path` is
    then as it was before.
    """
    target = Path(path)
    with placing(path):
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name[:64]}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        usual_mode(Path(name))
        with placing(path):
            Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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


def usual_mode(path: Path) -> None:
    """Give a file the permissions of any new one: temporary files, and onnx's external data, are the owner's alone."""
    path.chmod(0o666 & ~_umask())


def user_path(text: str) -> Path:
    """The path a user typed: `~` is the home folder, or itself where there is no such user."""
    return Path(os.path.expanduser(text.strip()))  # noqa: PTH111 (Path.expanduser raises)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
