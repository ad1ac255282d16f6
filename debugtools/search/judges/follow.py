"""Reading what a process prints while it prints it."""

from collections.abc import Iterator
from pathlib import Path

from layerwise._tool.backends.text import shown

_LONGEST = 1 << 16  # bytes that are read at once; a line without end is cut there


class Follower:
    """The lines that a file gains, safe to show."""

    def __init__(self, path: Path) -> None:
        self._path, self._at, self._rest = path, 0, b""

    def lines(self, *, whole: bool) -> Iterator[str]:
        """The lines added since the last call; with `whole` the last one too, though nothing ends it."""
        with self._path.open("rb") as stream:
            stream.seek(self._at)
            while data := stream.read(_LONGEST):
                self._at += len(data)
                *done, self._rest = (self._rest + data).split(b"\n")
                if len(self._rest) > _LONGEST:
                    done, self._rest = [*done, self._rest], b""
                yield from (shown(line.decode("utf-8", "replace").rstrip("\r")) for line in done)
        if whole and self._rest:
            yield shown(self._rest.decode("utf-8", "replace"))
            self._rest = b""
