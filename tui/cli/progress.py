"""Live progress on a terminal, nothing elsewhere; and jobs that run under it, with a report or as JSON."""

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.log import INFO, Log
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.cli.reports import reporter_of
from layerwise._tool.tui.cli.submit import Listener, concluding, run_detached, run_here

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec
    from layerwise._tool.debugtools.report.collected import Collected
    from layerwise._tool.tui.cli.json_output import Collector

    Document = Callable[[Collector, str, int], dict[str, Any]]


class Bar(Protocol):
    """What is given a job's events to show."""

    def __call__(self, event: Event) -> None: ...

    def hidden(self) -> AbstractContextManager[None]:
        """Leave the terminal to somebody else."""
        ...


class NoBar:
    """Shows nothing."""

    def __call__(self, event: Event) -> None:
        pass

    @contextmanager
    def hidden(self) -> Iterator[None]:
        yield


class Live:
    """A rich progress line at the foot of the terminal, fed by a job's events."""

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

    @contextmanager
    def hidden(self) -> Iterator[None]:
        self._bar.stop()
        try:
            yield
        finally:
            self._bar.start()

    def print(self, line: str) -> None:
        """Print a line above the bar, wrapped by nothing but the terminal."""
        from rich.text import Text

        self.console.print(Text.from_ansi(line), soft_wrap=True)

    def __call__(self, event: Event) -> None:
        if event.get("type") == "progress":
            text = shown(" ".join(str(event.get(key) or "") for key in ("unit", "text")).strip(), 50)
            self._bar.update(self._task, completed=event.get("done") or 0, total=event.get("total"), description=text)
        elif event.get("type") == "state":
            self._state(event)

    def _state(self, event: Event) -> None:
        """What it does or waits for; the clock shows how long the attempt has been running."""
        waiting = "waits for an answer" if event.get("state") == "waiting" else ""
        text = waiting or shown(str(event.get("reason") or event.get("state")), 60)
        self._bar.update(self._task, description=text)
        if event.get("pid"):
            ago = max(0.0, time.time() - float(event["t"]))
            self._bar.tasks[0].start_time = self._bar.get_time() - ago


@contextmanager
def progress(log: Log) -> Iterator[Bar]:
    """Something to give a job's events to: a bar where there is a terminal to show it on, else nothing."""
    if not (log.shows(INFO) and sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"):
        yield NoBar()
        return
    with Live() as live:
        log.printer = live.print if sys.stdout.isatty() else None
        try:
            yield live
        finally:
            log.printer = None


def run_shown(spec: "JobSpec", log: Log, *listeners: Listener) -> int:
    """Run the job to its end under this process, its progress shown; the exit code. Listeners get every event."""
    with progress(log) as show:

        def listen(event: Event) -> None:
            show(event)
            for listener in listeners:
                listener(event)

        return run_here(spec, listen, log)


def run_as_asked(
    spec: "JobSpec", args: Namespace, log: Log, report: Callable[[], Listener], document: "Document | None" = None
) -> int:
    """Run the job detached, or here with its report, or with one JSON document, as options say; the exit code.

    report: makes what prints the events; called while the worker starts. document: from what was collected, the command
    and the exit code to what --json prints. `args.take_job`: takes the job instead, which is run elsewhere.
    """
    if (take := getattr(args, "take_job", None)) is not None:
        take(spec)
        return 0
    if getattr(args, "detach", False):
        return run_detached(spec, log, as_json=args.json)
    reporter = reporter_of(args)
    collected = reporter.collected() if reporter else None
    listeners = [collected.event] if collected else []
    if not args.json:
        reports: list[Listener] = []

        def listen(event: Event) -> None:
            if not reports:
                reports.append(concluding(report(), log, spec.action))
            reports[0](event)

        return _reported(spec, args, collected, run_shown(spec, log, listen, *listeners))
    from layerwise._tool.tui.cli.json_output import Collector, print_json

    collector = Collector()
    code = run_here(spec, all_of(collector.event, *listeners), log)
    made = collector.document(args.command, code) if document is None else document(collector, args.command, code)
    print_json(made)
    return _reported(spec, args, collected, code)


def all_of(*listeners: Listener) -> Listener:
    """What gives each event to all of them."""

    def listen(event: Event) -> None:
        for listener in listeners:
            listener(event)

    return listen


def _reported(spec: "JobSpec", args: Namespace, collected: "Collected | None", code: int) -> int:
    """Write the reports that were asked for; the exit code."""
    reporter = reporter_of(args)
    return code if reporter is None else reporter.job(spec, collected, code, getattr(args, "named", None))
