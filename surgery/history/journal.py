"""A file of JSON lines that several processes append to, and that a kill at any moment leaves readable."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown


class Line(msgspec.Struct, omit_defaults=True):
    """One line of a history, version `log`: the model's path and key; an edit that was made, as JSON, and its parent;
    or where another one (`at`) became the current one. t: seconds since 1970.
    """

    log: int | None = None
    model: str | None = None
    key: str | None = None
    id: int | None = None
    parent: int | None = None
    edit: dict[str, object] | None = None
    at: int | None = None
    t: float = 0.0


class Journal:
    """take: is given each line once, others' and one's own, in the file's order.

    A line counts once its newline is on file; torn and foreign lines are skipped. Lines are not synced: they outlive
    any process, not a loss of power.
    """

    def __init__(self, path: Path, take: Callable[[Line], None]) -> None:
        self.path, self._take = path, take
        self._offset = 0
        self._torn = False

    def read(self) -> None:
        """Take what the file has gained; nothing if there is none."""
        try:
            with self.path.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return
        except OSError as error:
            raise LayerwiseError(f"{shown(str(self.path))} cannot be read: {error.strerror}") from None
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        self._torn = whole < len(data)
        for text in data[:whole].splitlines():
            with suppress(msgspec.DecodeError, UnicodeDecodeError):
                self._take(msgspec.json.decode(text, type=Line))

    @contextmanager
    def writing(self, first: Line) -> Iterator[Callable[[Line], None]]:
        """Hold the file alone, all that is in it taken; gives a function that appends. A new file starts with `first`.

        LayerwiseError where it cannot be written.
        """
        stream = -1
        try:
            make_folder(self.path.parent)
            stream = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(stream, fcntl.LOCK_EX)
            self.read()
            if not self._offset:
                self._append(stream, first)
            yield lambda line: self._append(stream, line)
        except OSError as error:
            raise LayerwiseError(f"{shown(str(self.path))} cannot be written: {error.strerror}") from None
        finally:
            if stream >= 0:
                os.close(stream)

    def _append(self, stream: int, line: Line) -> None:
        os.write(stream, b"\n" * self._torn + msgspec.json.encode(line) + b"\n")
        self._torn = False
        self._offset = os.fstat(stream).st_size
        self._take(line)
