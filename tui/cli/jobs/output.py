"""Printing what a job's worker printed."""

import codecs
import os
from pathlib import Path

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.regular import next_data, open_regular
from layerwise._tool.backends.log import put

_BLOCK = 1 << 20


class RawOutput:
    """Prints what a worker printed, block by block: what it wrote may be larger than the memory."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._in_line = False

    def print_new(self) -> None:
        """Print what was added. Raises BadFile where the log is no file."""
        try:
            fd = open_regular(self._path, own=True)
        except FileNotFoundError:
            return
        except OSError as error:
            raise BadFile(self._path, error.strerror or str(error)) from error
        try:
            self._offset = next_data(fd, self._offset)
            while data := os.pread(fd, _BLOCK, self._offset):
                self._print(self._decoder.decode(data))
                self._offset = next_data(fd, self._offset + len(data))
        finally:
            os.close(fd)

    def _print(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            ends = line.splitlines()[0] != line
            put(line.splitlines()[0], end="\n" if ends else "")
            self._in_line = not ends

    def end(self) -> None:
        """End the line that was not ended."""
        if self._in_line:
            put()
