"""Command lines started, watched and read to their end."""

import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from support import forkserver
from support.attack.place import Place

LIMIT = 40.0  # seconds until a command counts as hanging
_MEMORY = 4 << 30  # address space: what asks for more fails there instead of taking the machine down
_MOST_SHOWN = 1 << 20


class Ended(NamedTuple):
    """How a command ended. code: None: it hung; peak: bytes resident."""

    code: int | None
    out: str
    err: str
    seconds: float
    peak: int

    @property
    def said(self) -> str:
        return self.out + self.err


class Program:
    """`layerwise WORDS` in the work folder of a place, its output in files beside it."""

    def __init__(
        self, place: Place, words: Sequence[str], *, env: Mapping[str, str | None] | None = None,
        cwd: Path | None = None, limits: Mapping[int, int] | None = None, uid: int = 0, gone: bool = False,
        streams: tuple[int, int, int] | None = None, terminal: str = "",
    ) -> None:  # fmt: skip
        whole = {**place.env, **(env or {})}
        clean = {name: value for name, value in whole.items() if value is not None}
        name = f"said-{time.monotonic_ns()}"
        self._said = place.root / f"{name}.out", place.root / f"{name}.err"
        with _files(*self._said) as files:
            given = {resource.RLIMIT_AS: _MEMORY, **(limits or {})}
            self.process = forkserver.start(
                words, cwd or place.work, clean, streams or files, limits=given, uid=uid, gone=gone, terminal=terminal
            )
        self._started = time.monotonic()

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait(self, limit: float = LIMIT) -> Ended:
        """Its end, or its death after `limit` seconds."""
        code: int | None = None
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(10.0)
        seconds = time.monotonic() - self._started
        out, err = (_text(path) for path in self._said)
        return Ended(code, out, err, seconds, self.process.peak)


def run(place: Place, words: Sequence[str], limit: float = LIMIT, **options: object) -> Ended:
    """Start a command and wait for its end."""
    return Program(place, words, **options).wait(limit)  # type: ignore[arg-type]


@contextmanager
def _files(out: Path, err: Path) -> Iterator[tuple[int, int, int]]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    opened = [os.open(os.devnull, os.O_RDONLY), os.open(out, flags, 0o666), os.open(err, flags, 0o666)]
    try:
        yield opened[0], opened[1], opened[2]
    finally:
        for fd in opened:
            os.close(fd)


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_MOST_SHOWN).decode("utf-8", "backslashreplace")


def drain(fd: int, seconds: float) -> bytes:
    """What comes from a descriptor within some seconds, until it ends."""
    parts, deadline = [], time.monotonic() + seconds
    with suppress(OSError):
        while forkserver.readable(fd, deadline - time.monotonic()):
            part = os.read(fd, 1 << 16)
            if not part:
                break
            parts.append(part)
    return b"".join(parts)
