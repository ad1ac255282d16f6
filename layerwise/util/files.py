"""Files, by path or as objects."""

import fcntl
import glob
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise.exception.exception import MissingFile
from layerwise.logger import G_LOGGER


class NamedTemporaryFile:
    """A fresh file in the system's folder for such, at `name`; open inside a `with`. It is not removed."""

    def __init__(self, mode: str | None = None, prefix: str | None = None, suffix: str | None = None) -> None:
        self.mode = mode or "wb+"
        descriptor, self.name = tempfile.mkstemp(suffix or "", prefix or "")
        os.close(descriptor)
        self._fhandle: IO[Any] | None = None

    def __enter__(self) -> IO[Any]:
        self._fhandle = Path(self.name).open(self.mode)
        return self._fhandle

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._fhandle is not None
        self._fhandle.flush()
        os.fsync(self._fhandle.fileno())
        self._fhandle.close()


class LockFile:
    """Only one process at a time is inside the `with` for a path, with the file beside it that ends in ".lock".

    For an object in place of a path there is no lock.
    """

    def __init__(self, path: Any) -> None:
        self.is_file_like = is_file_like(path)
        self.lock_path = "" if self.is_file_like else f"{path}.lock"
        self._fhandle: IO[Any] | None = None

    def __enter__(self) -> None:
        if not self.is_file_like:
            self._fhandle = Path(self.lock_path).open("wb+")
            fcntl.lockf(self._fhandle.fileno(), fcntl.LOCK_EX)

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._fhandle is not None:
            fcntl.lockf(self._fhandle.fileno(), fcntl.LOCK_UN)
            self._fhandle.close()


def sanitize_filename(path: str) -> str:
    """A name without separators of folders."""
    return path.replace(os.path.sep, "_")


def add_file_suffix(path: str, suffix: str) -> str:
    """The suffix goes before the extension."""
    stem, extension = os.path.splitext(path)  # noqa: PTH122
    return f"{stem}{suffix}{extension}"


def find_in_dirs(name_glob: str, dirs: Sequence[str]) -> list[str]:
    """All paths that match in the first folder where one does."""
    for folder in dirs:
        if found := glob.glob(os.path.join(folder, name_glob)):  # noqa: PTH118, PTH207 (`./x`, not `x`)
            return found
    return []


def makedirs(path: str | os.PathLike[str]) -> None:
    """Make the folder that a file is to lie in."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)


def is_file_like(obj: Any) -> bool:
    """Whether it can be read and written as files are."""
    return hasattr(obj, "read") and hasattr(obj, "write")


def get_file_size(src: Any) -> int:
    """The bytes of a file, 0 if there is none at the path."""
    if hasattr(src, "fileno"):
        return os.fstat(src.fileno()).st_size
    path = Path(src)
    return path.stat().st_size if path.exists() else 0


def warn_if_wrong_mode(file_like: Any, mode: str) -> None:
    """A warning if an object was opened in another mode than needed."""
    there = file_like.mode
    reads, writes = ("r" in there or "+" in there), any(char in there for char in "wa+")
    wants_write = any(char in mode for char in "wa+")
    if ("b" in there) != ("b" in mode) or ("r" in mode and not reads) or (wants_write and not writes):
        G_LOGGER.warning(
            f"File-like object has a different mode than requested!\nNote: Requested mode was: {mode} but file-like "
            f"object has mode: {there}"
        )


def load_file(src: Any, mode: str = "rb", description: str | None = None) -> Any:
    """The contents of a file, text or bytes as `mode` says. An object is read from its start and left where it was."""
    if description is not None:
        G_LOGGER.info(f"Loading {description} from {src}")
    if not is_file_like(src):
        with Path(src).open(mode) as stream:
            return stream.read()
    warn_if_wrong_mode(src, mode)
    place = src.tell()
    if src.seekable():
        src.seek(0)
    contents = src.read()
    if src.seekable():
        src.seek(place)
    return contents


def save_file(contents: Any, dest: Any, mode: str = "wb", description: str | None = None) -> Any:
    """Write text or bytes to a file, whole or not at all, in a folder that is made if need be, or to an object.

    Returns `dest`. With "a" in `mode` the contents are appended.
    """
    if description is not None:
        G_LOGGER.info(f"Saving {description} to {dest}")
    if is_file_like(dest):
        warn_if_wrong_mode(dest, mode)
        dest.write(contents)
        dest.flush()
        os.fsync(dest.fileno())
        return dest
    makedirs(dest)
    if "a" in mode:
        with Path(dest).open(mode) as stream:
            stream.write(contents)
    elif "b" in mode:
        atomic_write(dest, bytes(memoryview(contents)))
    else:
        atomic_write(dest, _text(contents))
    return dest


def _text(contents: Any) -> str:
    if not isinstance(contents, str):
        raise TypeError(f"write() argument must be str, not {type(contents).__name__}")
    return contents


def check_there(path: str | os.PathLike[str]) -> None:
    """Raise MissingFile, which is a FileNotFoundError too, if there is nothing at a path."""
    if not os.path.lexists(path):
        raise MissingFile(path, "there is no such file")
