"""A file of JSON lines that several processes append to, and that stays readable after a kill at any time."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown


class HistoryLine(msgspec.Struct, omit_defaults=True):
    """One line of a history, version `log`: the model's path and key; an edit as JSON, and its parent; or the new
    current entry (`at`). t: seconds since 1970.
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
    """take: receives each line once, from this process and others, in file order.

    A line is valid once its newline is written; incomplete and foreign lines are skipped. Lines are not synced: they
    survive any process, but not a power failure.
    """

    def __init__(self, path: Path, take: Callable[[HistoryLine], None]) -> None:
        self.path, self._take = path, take
        self._offset = 0
        self._torn = False

    def read(self) -> None:
        """Process new lines of the file, if there are any."""
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
                self._take(msgspec.json.decode(text, type=HistoryLine))

    @contextmanager
    def writing(self, first: HistoryLine) -> Iterator[Callable[[HistoryLine], None]]:
        """Lock the file with all lines processed; yields a function that appends. A new file starts with `first`.

        LayerwiseError if it cannot be written.
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

    def _append(self, stream: int, line: HistoryLine) -> None:
        os.write(stream, b"\n" * self._torn + msgspec.json.encode(line) + b"\n")
        self._torn = False
        self._offset = os.fstat(stream).st_size
        self._take(line)
