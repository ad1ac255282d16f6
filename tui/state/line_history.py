"""Lines that were typed after `:`, kept over a restart."""

import json
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_write, read_file

MOST = 200
_LARGEST = 1 << 20  # bytes


class LineHistory:
    """Newest last. A line that is typed again moves to the end."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines: list[str] | None = None
        self._at = 0
        self._typed = ""

    @property
    def lines(self) -> list[str]:
        """All lines, read at first use; a file that cannot be read holds none."""
        if self._lines is None:
            self._lines = self._read()
            self._at = len(self._lines)
        return self._lines

    def add(self, line: str) -> None:
        """Note a line that was entered. One that cannot be written is noted for this session alone."""
        line = line.strip()
        if not line:
            return
        self._lines = [*(one for one in self.lines if one != line), line][-MOST:]
        self.rest()
        try:
            atomic_write(self._path, json.dumps(self._lines))
        except OSError:
            return

    def rest(self) -> None:
        """Begin at the newest again."""
        self._at, self._typed = len(self.lines), ""

    def older(self, now: str) -> str | None:
        """The line before, among those that begin as what was typed does; None if there is none."""
        if self._at >= len(self.lines):
            self._typed = now
        return self._step(range(min(self._at, len(self.lines)) - 1, -1, -1))

    def newer(self) -> str | None:
        """The line after; at the end what was typed. None where one is at the end already."""
        if self._at >= len(self.lines):
            return None
        found = self._step(range(self._at + 1, len(self.lines)))
        if found is None:
            self._at = len(self.lines)
            return self._typed
        return found

    def _step(self, places: range) -> str | None:
        for at in places:
            if self.lines[at].startswith(self._typed):
                self._at = at
                return self.lines[at]
        return None

    def _read(self) -> list[str]:
        try:
            found = json.loads(read_file(self._path, _LARGEST))
        except (LayerwiseError, OSError, ValueError, RecursionError):
            return []
        return [line for line in found if isinstance(line, str)][-MOST:] if isinstance(found, list) else []
