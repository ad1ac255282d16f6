"""A job whose supervisor is the calling process: for the command line, with the same guarantees."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.jobs import OWN
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.supervise import Supervision

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.processes.spare import SpareWorker
    from layerwise._tool.backends.jobs.spec import JobSpec
    from layerwise._tool.backends.jobs.workspace.store import Workspace

_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


def run_inline(
    spec: "JobSpec",
    on_event: Callable[[Event], None],
    workspace: "Workspace",
    actions: str = OWN,
    spare: "SpareWorker | None" = None,
) -> JobView:
    """Make a job, see it through, tell `on_event` of every event as it comes, and return the job as it ended.

    SIGINT and SIGTERM cancel the job (a second one kills it); SIGHUP does not. Call it from the main thread for
    that; from any other thread signals are left alone. `on_event` is called in a thread of its
    own: a slow one holds up nothing, and what it raises is raised here once the job has ended. `actions` is the module
    that offers the job's action, `spare` a worker of this thread's that waits for a job.
    """
    return see_through(lambda: workspace.create(spec), workspace, actions, on_event, spare)


def see_through(
    begin: Callable[[], tuple[Path, int]],
    workspace: "Workspace",
    actions: str = OWN,
    on_event: Callable[[Event], None] | None = None,
    spare: "SpareWorker | None" = None,
) -> JobView:
    """See the job through whose folder and lock `begin` gives, a new one or one begun again; as `run_inline`. `spare`
    is a worker that waits for it.
    """
    with ExitStack() as stack:
        with _held_back():
            try:
                folder, lock = begin()
            except BaseException:
                if spare is not None:
                    spare.dismiss()
                raise
            stack.callback(os.close, lock)
            supervision = Supervision(folder, lock, actions, on_event, spare)
            stack.callback(supervision.close)
            stack.enter_context(_signals(supervision))
        supervision.run()
    view = supervision.told()
    workspace.update(view)
    return view


@contextmanager
def _held_back() -> Iterator[None]:
    """Inside, signals wait: one that ends this process now would leave a job that was made and never ran."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _signals(supervision: Supervision) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers: dict[signal.Signals, Callable[..., None]] = {
        signal.SIGINT: supervision.stop, signal.SIGTERM: supervision.stop, signal.SIGHUP: supervision.let_go,
    }  # fmt: skip
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    wakeup = signal.set_wakeup_fd(supervision.sleeper.wake_fd, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
    if supervision.stopped_by == signal.SIGTERM and callable(before[signal.SIGTERM]):
        signal.raise_signal(signal.SIGTERM)  # the worker that runs this job is asked to end too
