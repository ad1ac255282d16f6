"""Live progress on a terminal; nothing elsewhere."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from backends.text import shown
from tui.cli.log import INFO, Log


class Live:
    """A rich progress line at the foot of the terminal, fed by a job's progress events."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self.console = Console(stderr=not sys.stdout.isatty(), highlight=False, markup=False)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
        )
        self._bar = Progress(
            *columns,
            console=self.console,
            transient=True,
            refresh_per_second=8,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> "Live":
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def print(self, line: str) -> None:
        """Print a line above the bar, wrapped by nothing but the terminal."""
        from rich.text import Text

        self.console.print(Text.from_ansi(line), soft_wrap=True)

    def event(self, event: dict[str, Any]) -> None:
        if event.get("type") == "progress":
            text = shown(" ".join(str(event.get(key) or "") for key in ("unit", "text")).strip(), 50)
            self._bar.update(self._task, completed=event.get("done") or 0, total=event.get("total"), description=text)


@contextmanager
def progress(log: Log) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Something to give progress events to: a bar where there is a terminal to show it on, else nothing."""
    if not (log.shows(INFO) and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"):
        yield lambda event: None
        return
    with Live() as live:
        log.printer = live.print if sys.stdout.isatty() else None
        try:
            yield live.event
        finally:
            log.printer = None
