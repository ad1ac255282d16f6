"""TensorRT's error recorder: errors with their codes, whether or not they are logged."""

from typing import Any

from layerwise._tool.backends.trt.logger import Messages

_MOST = 200


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
