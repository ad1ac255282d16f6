"""A job whose supervisor is the calling process: for the command line, with the same guarantees."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backends.jobs.events import Event
from backends.jobs.supervise import Supervision
from backends.jobs.view import JobView

if TYPE_CHECKING:
    from backends.jobs.spec import JobSpec
    from backends.jobs.store import Workspace


def run_inline(spec: "JobSpec", on_event: Callable[[Event], None], workspace: "Workspace") -> JobView:
    """Make a job, see it through, tell `on_event` of every event as it comes, and return the job as it ended.

    SIGINT and SIGTERM cancel the job (a second one kills it); after SIGHUP it goes on untold. Call it from
    the main thread for that; from any other thread signals are left alone. An exception of `on_event` cancels
    the job.
    """
    folder, lock = workspace.create(spec)
    supervision = Supervision(folder, lock, on_event)
    try:
        with _signals(supervision):
            supervision.run()
    finally:
        os.close(lock)
    return workspace.view(int(folder.name))


@contextmanager
def _signals(supervision: Supervision) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {
        signal.SIGINT: supervision.stop,
        signal.SIGTERM: supervision.stop,
        signal.SIGHUP: supervision.stop_telling,
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    wakeup = signal.set_wakeup_fd(supervision.sleeper.wake_fd, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
