"""The log of the Python API: `G_LOGGER`, with Polygraphy's levels and methods."""

import functools
import logging
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TextIO

from layerwise import config
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.log import LEVELS, Log, Text
from layerwise.exception.exception import PolygraphyInternalException
from layerwise.logger.severity import SeverityTrie

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["COLORED_MODULE_PRESENT", "G_LOGGER", "LogMode", "Logger", "LoggerIndent", "LoggerVerbosity", "SeverityTrie"]

COLORED_MODULE_PRESENT: bool | None = None
"""Kept for scripts that read it: colours need no other package here."""
_ROOT = str(Path(__file__).parents[1])
_LETTERS = {"INFO": "I", "START": "I", "FINISH": "I", "CRITICAL": "!", "EXTRA_VERBOSE": "X"}


def has_colors() -> bool:
    """Whether messages can be coloured: always, on a terminal."""
    return True


class LogMode(IntEnum):
    """Whether the same message is printed each time or once."""

    EACH = 0
    ONCE = 1


class LoggerIndent:
    """Messages logged inside the `with` are indented so many tabs."""

    def __init__(self, logger: "Logger", indent: int) -> None:
        self.logger, self.indent, self.old_indent = logger, indent, logger.logging_indent

    def __enter__(self) -> "Self":
        self.logger.logging_indent = self.indent
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.logger.logging_indent = self.old_indent


class LoggerVerbosity:
    """Another level inside the `with`."""

    def __init__(self, logger: "Logger", severity: Any) -> None:
        self.logger, self.module_severity, self.old_severity = logger, severity, logger.module_severity

    def __enter__(self) -> "Self":
        self.logger.module_severity = self.module_severity
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.logger.module_severity = self.old_severity


class Logger(Log):
    """A log whose level is set for everything or by part, for good or within a `with`."""

    ULTRA_VERBOSE, SUPER_VERBOSE, EXTRA_VERBOSE = (
        LEVELS[name] for name in ("ULTRA_VERBOSE", "SUPER_VERBOSE", "EXTRA_VERBOSE")
    )
    VERBOSE, INFO, START, FINISH = (LEVELS[name] for name in ("VERBOSE", "INFO", "START", "FINISH"))
    WARNING, ERROR, CRITICAL = (LEVELS[name] for name in ("WARNING", "ERROR", "CRITICAL"))
    SEVERITY_LETTER_MAPPING: ClassVar[dict[int, str]] = {
        level: f"[{_LETTERS.get(name, name[0])}]" for name, level in LEVELS.items()
    }
    SEVERITY_COLOR_MAPPING: ClassVar[dict[int, str | None]] = {
        LEVELS["ULTRA_VERBOSE"]: "dark_gray", LEVELS["SUPER_VERBOSE"]: "medium_violet_red",
        LEVELS["EXTRA_VERBOSE"]: "medium_purple", LEVELS["VERBOSE"]: "light_magenta", LEVELS["INFO"]: None,
        LEVELS["START"]: "light_cyan", LEVELS["FINISH"]: "light_green", LEVELS["WARNING"]: "light_yellow",
        LEVELS["ERROR"]: "light_red", LEVELS["CRITICAL"]: "light_red",
    }  # fmt: skip

    def __init__(
        self,
        severity: Any = LEVELS["INFO"],
        colors: bool = True,
        letter: bool = True,
        timestamp: bool = False,
        line_info: bool = False,
    ) -> None:
        super().__init__(colors=colors)
        self.letter, self.timestamp, self.line_info = letter, timestamp, line_info
        self.logger_callbacks: list[Callable[[SeverityTrie], None]] = []
        self._to_python = False
        self._log_path: str | None = None
        self.module_severity = severity

    @property
    def module_severity(self) -> SeverityTrie:
        """Levels by part; "" is the default. May be set to one level, or to such a mapping."""
        return self._severities

    @module_severity.setter
    def module_severity(self, value: SeverityTrie | int | Mapping[str, int]) -> None:
        if not isinstance(value, SeverityTrie):
            value = SeverityTrie({"": self.INFO} | (dict(value) if isinstance(value, Mapping) else {"": value}))
        self._severities = value
        self.levels = value.trie
        for callback in self.logger_callbacks:
            callback(value)

    @property
    def severity(self) -> int:
        """The level for everything that has none of its own."""
        return self.levels[""]

    @severity.setter
    def severity(self, value: int) -> None:
        self.module_severity = {**self.levels, "": value}

    @property
    def logging_indent(self) -> int:
        """Tabs before every message."""
        return self.depth

    @logging_indent.setter
    def logging_indent(self, value: int) -> None:
        self.depth = value

    @property
    def once_logged(self) -> set[str]:
        """What was logged in a mode that logs it once."""
        return self._said

    @property
    def log_file(self) -> str | None:
        """A file that gets every message too; it is emptied when this is set."""
        return self._log_path

    @log_file.setter
    def log_file(self, value: str | None) -> None:
        self._log_path = value
        self._file = None
        if value:
            self.open_file(value)

    @property
    def use_python_logging_system(self) -> bool:
        """Whether messages go to Python's logger "Polygraphy" instead of stdout and stderr."""
        return self._to_python

    @use_python_logging_system.setter
    def use_python_logging_system(self, value: bool) -> None:
        self._to_python = value

    def module_path(self, path: str) -> str:
        """A file's path as levels name it: below the package's folder, or what is left of the part they share."""
        path = os.path.join(Path.cwd(), path)  # noqa: PTH118 (what was compiled from a text has a name alone)
        relative = os.path.relpath(path, _ROOT)
        return path[len(os.path.commonpath([_ROOT, path])) :].lstrip(os.sep) if os.pardir in relative else relative

    def register_callback(self, callback: Callable[[SeverityTrie], None]) -> None:
        """Have a function called with the levels: now, and whenever they change."""
        callback(self.module_severity)
        self.logger_callbacks.append(callback)

    def indent(self, level: int = 1) -> LoggerIndent:  # type: ignore[override]
        """Indent what is logged inside a `with`."""
        return LoggerIndent(self, level + self.logging_indent)

    def verbosity(self, severity: Any = LEVELS["CRITICAL"]) -> LoggerVerbosity:
        """Another level inside a `with`; by default almost nothing is printed."""
        return LoggerVerbosity(self, severity)

    def say(self, level: int, text: Text, source: str = "", once: bool = False, above: int = 1) -> None:
        if self._severities.has_non_default_entries and not source:
            source = self.module_path(sys._getframe(above).f_code.co_filename)
        super().say(level, text, source, once, above + 1)

    def log(
        self, message: Any, severity: int, mode: LogMode = LogMode.EACH, stack_depth: int = 2, error_ok: bool = False
    ) -> None:
        """Log a message, or what a callable returns if it will be shown. error_ok: its error is logged instead."""
        text = _forgiving(message) if error_ok and callable(message) else message
        self.say(severity, text, once=mode == LogMode.ONCE, above=stack_depth)

    def ultra_verbose(self, message: Any, mode: LogMode = LogMode.EACH) -> None:
        self.log(message, self.ULTRA_VERBOSE, mode, 3, error_ok=True)

    def super_verbose(self, message: Any, mode: LogMode = LogMode.EACH) -> None:
        self.log(message, self.SUPER_VERBOSE, mode, 3, error_ok=True)

    def extra_verbose(self, message: Any, mode: LogMode = LogMode.EACH) -> None:
        self.log(message, self.EXTRA_VERBOSE, mode, 3, error_ok=True)

    def verbose(self, message: Any, mode: LogMode = LogMode.EACH) -> None:  # type: ignore[override]
        self.log(message, self.VERBOSE, mode, 3, error_ok=True)

    def info(self, message: Any, mode: LogMode = LogMode.EACH) -> None:  # type: ignore[override]
        self.log(message, self.INFO, mode, 3)

    def start(self, message: Any, mode: LogMode = LogMode.EACH) -> None:  # type: ignore[override]
        self.log(message, self.START, mode, 3)

    def finish(self, message: Any, mode: LogMode = LogMode.EACH) -> None:  # type: ignore[override]
        self.log(message, self.FINISH, mode, 3)

    def warning(self, message: Any, mode: LogMode = LogMode.EACH) -> None:  # type: ignore[override]
        self.log(message, self.WARNING, mode, 3)

    def error(self, message: Any, mode: LogMode = LogMode.EACH) -> None:  # type: ignore[override]
        self.log(message, self.ERROR, mode, 3)

    def critical(self, message: Any, ExceptionType: Callable[[Any], Exception] | None = None) -> NoReturn:
        """Log a fatal error and raise it, a PolygraphyException by default."""
        self.log(message, self.CRITICAL, stack_depth=3)
        raise (ExceptionType or LayerwiseError)(message() if callable(message) else message) from None

    exit = critical

    def internal_error(self, message: Any) -> None:
        """Log and raise what should never happen, if config.INTERNAL_CORRECTNESS_CHECKS is on."""
        if config.INTERNAL_CORRECTNESS_CHECKS:
            self.log(message, self.CRITICAL, stack_depth=3)
            raise PolygraphyInternalException(message)

    def backtrace(self, depth: int = 0, limit: int | None = None, severity: int = LEVELS["ERROR"]) -> None:
        """Log where the caller was called from: more frames at lower levels."""
        wanted = max(0, (3 - self.severity // 10) * 2 if limit is None else limit)
        self.log(" ".join(traceback.format_stack(sys._getframe(depth + 2), wanted)), severity)

    def module_info(self, module: Any, name: str | None = None, severity: int = LEVELS["VERBOSE"]) -> None:
        """Log once which module was loaded, its version and where it is."""
        text = name or f"Loaded Module: {getattr(module, '__name__', module)}"
        text += f" | Version: {module.__version__}" if hasattr(module, "__version__") else ""
        with suppress(Exception):
            text += f" | Path: {list(map(os.path.realpath, module.__path__))}"
        self.log(text, severity, LogMode.ONCE, 3)

    def log_exception(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """A decorator that logs errors which are none of ours: callbacks of native code may lose them."""

        @functools.wraps(func)
        def logging_errors(*args: Any, **kwargs: Any) -> Any:
            try:
                return func(*args, **kwargs)
            except LayerwiseError:
                raise
            except Exception as error:
                self.error(error)
                raise

        return logging_errors

    def _emit(self, level: int, prefix: str, message: str) -> None:
        self._level = level
        super()._emit(level, prefix, message)

    def _write(self, line: str, colour: str, stream: TextIO) -> None:
        if not self.use_python_logging_system:
            return super()._write(line, colour, stream)
        self._keep(line)
        python_levels = {self.ULTRA_VERBOSE: 2, self.SUPER_VERBOSE: 4, self.EXTRA_VERBOSE: 6}
        logging.getLogger("Polygraphy").log(python_levels.get(self._level, self._level), line)
        return None


def _forgiving(message: Callable[[], str]) -> Callable[[], str]:
    def text() -> str:
        try:
            return str(message())
        except Exception as error:
            if config.INTERNAL_CORRECTNESS_CHECKS:
                raise
            return f"<Error while logging this message: {error}>"

    return text


G_LOGGER = Logger()
