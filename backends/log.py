"""The log of the command line and the Python API, with Polygraphy's levels, letters and formats."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown, shown_lines

LEVELS = {
    "ULTRA_VERBOSE": -20,
    "SUPER_VERBOSE": -10,
    "EXTRA_VERBOSE": 0,
    "VERBOSE": 10,
    "INFO": 20,
    "START": 22,
    "FINISH": 28,
    "WARNING": 30,
    "ERROR": 40,
    "CRITICAL": 50,
}
VERBOSE, INFO, START, FINISH, WARNING, ERROR, CRITICAL = 10, 20, 22, 28, 30, 40, 50
_LETTERS = {-20: "U", -10: "S", 0: "X", 10: "V", 30: "W", 40: "E", 50: "!"}
_COLOURS = {
    -20: "90",
    -10: "35",
    0: "35",
    10: "95",
    START: "96",
    FINISH: "92",
    WARNING: "93",
    ERROR: "91",
    CRITICAL: "91",
}
_TOOL = Path(__file__).parents[1]
_TAB = "    "
Text = str | Callable[[], str]


class Log:
    """Prints messages at or above a level, to stdout (fatal ones to stderr) and to a file if one is set.

    levels: "" -> level for everything, and "backend/onnxrt" or "comparator" -> level for a part; the longest
    match wins.
    """

    def __init__(self, level: int = INFO, colors: bool = True) -> None:
        self.levels: dict[str, int] = {"": level}
        self.colors = colors
        self.letter = True
        self.timestamp = False
        self.line_info = False
        self.to_stderr = False
        self.depth = 0
        self.failure: str | None = None  # the last fatal message
        self.printer: Callable[[str], None] | None = None  # takes what goes to a terminal that also shows a bar
        self._file: TextIO | None = None
        self._said: set[str] = set()

    def shows(self, level: int, source: str = "") -> bool:
        """Return whether a message of `level` from the part `source` would be printed."""
        return level >= self._level_of(source)

    def say(self, level: int, text: Text, source: str = "", once: bool = False, above: int = 1) -> None:
        """Log `text` (or its result if callable, called only if shown). `above`: frames between here and the caller."""
        if not self.shows(level, source):
            return
        message = text() if callable(text) else str(text)
        if level >= CRITICAL:
            self.failure = message
        if once and message in self._said:
            return
        if once:
            self._said.add(message)
        self._emit(level, self._prefix(level, above), message)

    def info(self, text: Text, source: str = "") -> None:
        self.say(INFO, text, source, above=2)

    def verbose(self, text: Text, source: str = "") -> None:
        self.say(VERBOSE, text, source, above=2)

    def start(self, text: Text, source: str = "") -> None:
        self.say(START, text, source, above=2)

    def finish(self, text: Text, source: str = "") -> None:
        self.say(FINISH, text, source, above=2)

    def warning(self, text: Text, source: str = "") -> None:
        self.say(WARNING, text, source, above=2)

    def error(self, text: Text, source: str = "") -> None:
        self.say(ERROR, text, source, above=2)

    def fatal(self, text: Text) -> None:
        """Log why a command cannot go on."""
        self.say(CRITICAL, text, above=2)

    def verdict(self, passed: bool, text: Text, source: str = "") -> None:
        """Log FINISH if something passed, ERROR if it failed."""
        self.say(FINISH if passed else ERROR, text, source, above=2)

    def continued(self, text: str) -> None:
        """Continue the previous message with more lines."""
        self._write(shown_lines(text), "", sys.stderr if self.to_stderr else sys.stdout)

    @contextmanager
    def indent(self, level: int = 1) -> Iterator[None]:
        """Indent messages logged inside by `level` tabs."""
        self.depth += level
        try:
            yield
        finally:
            self.depth -= level

    def only_errors_to_stderr(self) -> None:
        """Keep stdout free for a machine-readable document."""
        self.to_stderr = True
        self.levels = {"": max(ERROR, self.levels[""])}

    def open_file(self, path: str) -> None:
        """Write messages to `path` too; UsageError if it cannot be written."""
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = Path(path).open("w", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
        except OSError as error:
            raise UsageError(f"--log-file {shown(path)}: {error.strerror}") from None

    def _level_of(self, source: str) -> int:
        while source and source not in self.levels:
            source = source.rpartition("/")[0]
        return self.levels[source]

    def _prefix(self, level: int, above: int) -> str:
        words = [f"[{_LETTERS.get(level, 'I')}]"] if self.letter else []
        if self.timestamp:
            words.append(f"({time.strftime('%X')})")
        if self.line_info:
            frame = sys._getframe(above + 1)
            words.append(f"[{_relative(frame.f_code.co_filename)}:{frame.f_lineno}]")
        return "".join(f"{word} " for word in words)

    def _emit(self, level: int, prefix: str, message: str) -> None:
        tab = _TAB * self.depth
        lines = shown_lines(message).split("\n")
        line = prefix + tab + ("\n" + tab + " " * len(prefix)).join(lines)
        stream = sys.stderr if level >= CRITICAL or self.to_stderr else sys.stdout
        self._write(line, _COLOURS.get(level, ""), stream)

    def _write(self, line: str, colour: str, stream: TextIO) -> None:
        self._keep(line)
        coloured = colour and self.colors and stream.isatty()
        text = f"\x1b[{colour}m{line}\x1b[0m" if coloured else line
        if self.printer is not None and stream is sys.stdout:
            self.printer(text)
        else:
            print(text, file=stream)

    def _keep(self, line: str) -> None:
        """Write a line to the file; a file that cannot be written is reported once and dropped."""
        file = self._file
        if file is None:
            return
        try:
            file.write(line + "\n")
            file.flush()
        except OSError as error:
            self._file = None
            with suppress(OSError):
                file.close()
            self.error(f"--log-file {shown(file.name)}: {error.strerror}; nothing more goes there")


def put(text: object = "", end: str = "\n") -> None:
    """Print text that may quote names on stdout, whatever the level of a log."""
    print(shown_lines(text), end=end, flush=not end)


def _relative(path: str) -> str:
    return path.removeprefix(f"{_TOOL}{os.sep}").removeprefix(f"{_TOOL.parents[1]}{os.sep}")
