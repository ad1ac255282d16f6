"""What a workspace's jobs were at when a test gave up on them, for its message."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from layerwise._tool.backends.jobs.folder import LOG, REPLIES
from layerwise._tool.backends.jobs.journal.json_lines import last_lines
from layerwise._tool.backends.jobs.journal.schema import FINAL
from layerwise._tool.backends.jobs.journal.view import JobView

_LAST = 4
_LOG_BYTES = 6000


def unfinished(home: Path) -> str:
    """Jobs that have not ended: their last events and requests, and where their workers stand."""
    folders = sorted((home / "jobs").glob("[0-9]*"), key=lambda folder: int(folder.name))
    return "\n".join(line for folder in folders for line in _job(JobView(folder)))


def _job(view: JobView) -> Iterator[str]:
    events = list(view.news())
    if view.state in FINAL:
        return
    yield f"job {view.id} is {view.state} {view.reason}; now {time.time():.2f}"
    yield from (f"  event {str(event)[:300]}" for event in events[-_LAST:])
    yield from (f"  reply {str(reply)[:300]}" for reply in last_lines(view.folder / REPLIES)[-_LAST:])
    pids = [event["pid"] for event in events if "pid" in event][-1:]
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGUSR2)  # faulthandler writes its stack to the log
            time.sleep(0.2)
    with suppress(OSError):
        yield (view.folder / LOG).read_text(errors="replace")[-_LOG_BYTES:]
