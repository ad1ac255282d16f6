"""The log of the Python API: `G_LOGGER`, with Polygraphy's levels and methods."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import IntEnum
from typing import NoReturn

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.log import LEVELS, Log, Text


class LogMode(IntEnum):
    """Whether the same message is printed each time or once."""

    EACH = 0
    ONCE = 1


class Logger(Log):
    """A log whose level is set for everything or by part, for good or within a `with`."""

    ULTRA_VERBOSE, SUPER_VERBOSE, EXTRA_VERBOSE = (
        LEVELS[name] for name in ("ULTRA_VERBOSE", "SUPER_VERBOSE", "EXTRA_VERBOSE")
    )
    VERBOSE, INFO, START, FINISH = (LEVELS[name] for name in ("VERBOSE", "INFO", "START", "FINISH"))
    WARNING, ERROR, CRITICAL = (LEVELS[name] for name in ("WARNING", "ERROR", "CRITICAL"))

    @property
    def module_severity(self) -> Mapping[str, int]:
        """Level by part; "" is the default. May be set to one level or to such a mapping."""
        return self.levels

    @module_severity.setter
    def module_severity(self, value: int | Mapping[str, int]) -> None:
        self.levels = {"": self.INFO} | (dict(value) if isinstance(value, Mapping) else {"": value})

    @property
    def severity(self) -> int:
        """The level for everything that has none of its own."""
        return self.levels[""]

    @severity.setter
    def severity(self, value: int) -> None:
        self.levels = {**self.levels, "": value}

    def verbosity(self, severity: int | Mapping[str, int] = LEVELS["CRITICAL"]) -> AbstractContextManager["Logger"]:
        """Another level inside a `with`; by default almost nothing is printed."""
        return self._at(severity)

    @contextmanager
    def _at(self, severity: int | Mapping[str, int]) -> Iterator["Logger"]:
        before = self.levels
        self.module_severity = severity
        try:
            yield self
        finally:
            self.levels = before

    def log(self, message: Text, severity: int, mode: LogMode = LogMode.EACH) -> None:
        """Log a message, or what a callable returns if it will be shown."""
        self.say(severity, message, once=mode == LogMode.ONCE, above=2)

    def ultra_verbose(self, message: Text) -> None:
        self.say(self.ULTRA_VERBOSE, message, above=2)

    def super_verbose(self, message: Text) -> None:
        self.say(self.SUPER_VERBOSE, message, above=2)

    def extra_verbose(self, message: Text) -> None:
        self.say(self.EXTRA_VERBOSE, message, above=2)

    def critical(self, message: Text, ExceptionType: Callable[[str], Exception] = LayerwiseError) -> NoReturn:
        """Log a fatal error and raise it."""
        self.say(self.CRITICAL, message, above=2)
        raise ExceptionType(message() if callable(message) else message)


G_LOGGER = Logger()
