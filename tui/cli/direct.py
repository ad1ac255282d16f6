"""Runs an action that only reads and writes files right here: no model runs, so no process of its own is needed."""

from typing import Any

from layerwise._tool.backends.log import INFO, Log


class DirectContext:
    """What a job's action needs of a job; its text goes straight to the output."""

    def __init__(self, params: dict[str, Any], log: Log, tab: str = "") -> None:
        self.params = params
        self._log = log
        self._tab = tab
        self._lines = 0

    def log(self, text: str, level: str = "info") -> None:
        """Print a line of output ("out"), the first one as a message and the rest below it, or a message."""
        if level != "out" or not self._lines:
            self._log.info(text)
        elif self._log.shows(INFO):
            self._log.continued(self._tab + text)
        self._lines += level == "out"

    def warn(self, text: str) -> None:
        self._log.warning(text)
