"""What Python code prints in a worker, scripts of users above all: told as events, besides being in the log."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.journal.schema import PRINTED

_MOST = 10_000  # lines; a journal is no place for more
_LONGEST = 4000


class Printed:
    """A stdout that passes everything on to `stream`, and lines, once they end, to `context` too.

    Other processes, forked from this one, write to the stream alone: a journal has one writer.
    """

    def __init__(self, context: JobContext, stream: TextIO) -> None:
        self._context, self._stream = context, stream
        self._pid, self._lines, self._begun = os.getpid(), 0, ""
        self._lock, self._open = threading.RLock(), True

    def write(self, text: str) -> int:
        """Print text."""
        count = self._stream.write(text)
        if self._open and os.getpid() == self._pid:
            with self._lock:
                *whole, self._begun = (self._begun + text).split("\n")
                for line in whole:
                    self._tell(line)
                self._begun = self._begun[-_LONGEST:]
        return count

    def writelines(self, lines: Iterator[str]) -> None:
        """Print texts one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def finish(self) -> None:
        """Tell what has no end of line."""
        with self._lock:
            if self._begun:
                self._tell(self._begun)
            self._begun = ""

    def close_journal(self) -> None:
        """Tell nothing any more: who has kept this stdout may go on printing when the job has ended."""
        self._open = False

    def _tell(self, line: str) -> None:
        self._lines += 1
        if self._lines <= _MOST:
            self._context.log(line.rpartition("\r")[2][:_LONGEST], PRINTED)
        elif self._lines == _MOST + 1:
            self._context.warn(f"more is printed than {_MOST:,} lines: layerwise jobs logs {self._context.folder.name}")


@contextmanager
def told(context: JobContext) -> Iterator[None]:
    """Inside, what Python prints is told by the job."""
    before, sys.stdout = sys.stdout, Printed(context, sys.stdout)
    printed: Any = sys.stdout
    try:
        yield
        printed.finish()
    finally:
        printed.close_journal()
        sys.stdout = before
