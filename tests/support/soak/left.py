"""What is on file and on the machine after a comparison: its rows, and what was left behind."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
from support.soak.processes import within

from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.workspace import leases
from layerwise._tool.backends.jobs.workspace.store import Workspace

GONE_WITHIN = 1.0


def rows_of(folder: Path) -> list[str]:
    """The rows of a job's layer table that are on file, without the times they took."""
    rows = [event["row"] for event in read_events(folder) if event["type"] == "row" and event["table"] == "layers"]
    return [json.dumps(row, sort_keys=True) for row in rows]


def left_behind(home: Workspace) -> list[str]:
    """Leases and processes that are still there; they get a second to go."""
    within(GONE_WITHIN, lambda: not list(_left(home)))
    return list(_left(home))


def _left(home: Workspace) -> Iterator[str]:
    for folder in home.leases.iterdir():
        yield from (f"the lease {name} is still taken" for name in leases.taken(folder))
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.environ().get("LAYERWISE_JOB", "")]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(home.jobs) in word for word in words):
            yield f"a process is left: {process.pid} {' '.join(words)}"
