"""Collects TensorRT's messages, and errors with their codes, and passes them on."""

from collections.abc import Callable
from typing import Any

Say = Callable[[str, str], None]
_LEVELS = {"INTERNAL_ERROR": "error", "ERROR": "error", "WARNING": "warning", "INFO": "info", "VERBOSE": "verbose"}
_KEPT = 200
_MOST = 200


def silent(level: str, text: str) -> None:
    """Ignore the message."""


class Messages:
    """Messages of a logger and an error recorder. errors and warnings: the last 200 of each, in order; codes: of the
    recorded errors.
    """

    def __init__(self, say: Say = silent, *, verbose: bool = False) -> None:
        self.say, self.verbose = say, verbose
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self.listeners: list[Callable[[str], None]] = []
        self.codes: list[str] = []

    def hear(self, severity: str, text: str) -> None:
        """Receive one message from TensorRT, its severity by name."""
        for listen in self.listeners:
            listen(text)
        level = _LEVELS.get(severity, "info")
        kept = {"error": self.errors, "warning": self.warnings}.get(level)
        if kept is not None:
            kept.append(text)
            del kept[:-_KEPT]
        if level != "verbose" or self.verbose:
            self.say(level, text)

    def record(self, code: str, text: str) -> None:
        """Receive one error from the recorder, its code by name; usually it is also logged."""
        self.codes.append(code)
        self.hear("ERROR", text)

    def reason(self, otherwise: str) -> str:
        """Return the errors since the last call, each once, as one text; `otherwise` if there were none."""
        found, codes = list(dict.fromkeys(self.errors)), list(dict.fromkeys(self.codes))
        self.errors, self.codes = [], []
        found = [text for text in found if not any(text != other and text in other for other in found)]
        told = "\n".join(found[-8:])
        return f"{told} [{', '.join(codes)}]" if told and codes else told or otherwise


def make_logger(trt: Any, messages: Messages) -> Any:
    """Return an ILogger that reports to `messages`. Keep it as long as anything made with it."""

    class Logger(trt.ILogger):  # type: ignore[misc]
        def log(self, severity: Any, msg: str) -> None:
            messages.hear(severity.name, str(msg))

    return Logger()


def make_recorder(trt: Any, messages: Messages) -> Any:
    """Return an IErrorRecorder that reports to `messages`. Keep it as long as the object it is set on."""

    class Recorder(trt.IErrorRecorder):  # type: ignore[misc]
        def __init__(self) -> None:
            trt.IErrorRecorder.__init__(self)
            self._found: list[tuple[Any, str]] = []

        def num_errors(self) -> int:
            return len(self._found)

        def get_error_code(self, index: int) -> Any:
            return self._found[index][0] if 0 <= index < len(self._found) else trt.ErrorCodeTRT.INVALID_ARGUMENT

        def get_error_desc(self, index: int) -> str:
            return self._found[index][1] if 0 <= index < len(self._found) else ""

        def has_overflowed(self) -> bool:
            return len(self._found) >= _MOST

        def clear(self) -> None:
            self._found.clear()

        def report_error(self, code: Any, desc: str) -> bool:
            if len(self._found) < _MOST:
                self._found.append((code, str(desc)))
            messages.record(code.name, str(desc))
            return True

    return Recorder()
