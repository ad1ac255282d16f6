"""Errors that a user can act on."""

from backends.text import shown


class LayerwiseError(Exception):
    """Something the user can act on. Shown as one message, never as a traceback."""

    exit_code = 1


class UsageError(LayerwiseError):
    """The request itself is wrong: an option, a name, a file that does not fit."""

    exit_code = 2


class MissingDependency(LayerwiseError):
    """A package, provider or native library that was asked for is not there; the message says what to install."""


class BadFile(LayerwiseError):
    """A file cannot be read as what it should be. The message names the file and the reason."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{shown(str(path))}: {reason}")
        self.path = str(path)
        self.reason = reason
