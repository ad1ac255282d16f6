"""The command's own output: whoever read it may go away, and what is written then is lost without a word.

A terminal that hung up, a pipe whose reader left and a full disk end the telling, not the command: its exit code stays
that of its verdict.
"""

import errno
import io
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from layerwise._tool.backends.text import shown

_GONE = frozenset({errno.EPIPE, errno.EIO, errno.EBADF, errno.ENXIO, errno.ECONNRESET})


class Output(io.FileIO):
    """Writes whole what it is given; after the first failure, nothing."""

    failure: OSError | None = None

    def write(self, data: bytes | bytearray | memoryview, /) -> int:  # type: ignore[override]
        left = memoryview(data).cast("B")
        size = left.nbytes
        while left and self.failure is None:
            try:
                left = left[self._some(left) :]
            except OSError as error:
                self.failure = error
        return size

    def _some(self, data: memoryview) -> int:
        written = super().write(data)
        if written is None:  # another program made the terminal's descriptor one that never waits
            _until_writable(self.fileno())
        return written or 0


def open_closed_streams() -> None:
    """Give those that a daemon starts us without something to read and to write."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115


@contextmanager
def forgiving_streams() -> Iterator[None]:
    """Inside, what is written to stdout and stderr goes through an `Output` each.

    Each line is written when it is said. What the encoding of the output lacks is written as an escape.
    """
    before = sys.stdout, sys.stderr
    try:
        for name, stream in zip(("stdout", "stderr"), before, strict=True):
            output = _output(stream)
            if output is not None:
                text = io.TextIOWrapper(output, stream.encoding, "backslashreplace", line_buffering=True)
                setattr(sys, name, text)
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.stdout, sys.stderr = before


def reader_gone() -> bool:
    """Whether nobody can read our output any more."""
    return _failure() is not None


def lost_output() -> str:
    """Why a full disk or the like lacks what was said, "" where nothing is lacking or only a reader has gone."""
    failure = _failure()
    if failure is None or failure.errno in _GONE:
        return ""
    return f"standard output cannot be written: {shown(str(failure.strerror))}"


def _failure() -> OSError | None:
    raw = getattr(sys.stdout, "buffer", None)
    return raw.failure if isinstance(raw, Output) else None


def _until_writable(fd: int) -> None:
    poller = select.poll()
    poller.register(fd, select.POLLOUT)
    poller.poll()


def _output(stream: object) -> Output | None:
    """None for a stream that is no file: a caller's own."""
    if not isinstance(stream, io.TextIOWrapper):
        return None
    try:
        stream.flush()
        return Output(stream.fileno(), "w", closefd=False)
    except (OSError, ValueError):
        return None
