"""Live progress on a terminal; nothing elsewhere."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from backends.text import shown


class Live:
    """A rich progress line at the foot of the terminal, fed by a job's progress events."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True, highlight=False, markup=False)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bar = Progress(*columns, console=console, transient=True, refresh_per_second=8)
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> "Live":
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def event(self, event: dict[str, Any]) -> None:
        if event.get("type") == "progress":
            text = shown(" ".join(str(event.get(key) or "") for key in ("unit", "text")).strip(), 50)
            self._bar.update(self._task, completed=event.get("done") or 0, total=event.get("total"), description=text)


class Silent:
    """Takes progress events and shows nothing."""

    def event(self, event: dict[str, Any]) -> None:
        pass


def progress(wanted: bool) -> AbstractContextManager[Live | Silent]:
    """A Live line where there is a terminal to show it on, else something that keeps quiet."""
    on_terminal = sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    return Live() if wanted and on_terminal else nullcontext(Silent())
