"""Writing files so that nothing half-written is ever taken for whole."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from backends.errors import LayerwiseError, placing


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a temporary file beside `path`; on success sync it and rename it to `path`, on error remove it.
    A device or a pipe at `path` is written to as it is.

    Raises OSError as the file system gives it (a full disk among them), Unwritable where no file can be; `path` is
    then as it was before.
    """
    target = Path(path)
    if target.exists() and not (target.is_file() or target.is_dir()):  # a file would take the place of /dev/null
        with target.open("wb") as stream:
            yield stream
        return
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
