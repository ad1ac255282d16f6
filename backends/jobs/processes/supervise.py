"""Seeing one attempt of a job through: leases, worker, cancel, timeout, and how it ended.

The detached supervisor and the command line run this same code. Only the standard library is imported.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError, refusal
from layerwise._tool.backends.filesystem.permissions import keep_private
from layerwise._tool.backends.jobs.folder import JOURNAL, LOG, REPLIES, raw_spec
from layerwise._tool.backends.jobs.journal.events import read_events
from layerwise._tool.backends.jobs.journal.json_lines import LineReader
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.jobs.processes.cards import DISK_ERRORS, DISK_FULL_EXIT, Ending
from layerwise._tool.backends.jobs.processes.conclude import conclude, journal
from layerwise._tool.backends.jobs.processes.control import (
    WorkerProcess,
    environment,
    large_pages,
    start_worker,
    sweep,
)
from layerwise._tool.backends.jobs.processes.memory import MemoryWatch, oom_kills
from layerwise._tool.backends.jobs.waiting.sleeper import Sleeper
from layerwise._tool.backends.jobs.workspace import gpus, leases

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.journal.delivery import EventDelivery
    from layerwise._tool.backends.jobs.processes.spare import SpareWorker

GRACE = 2.0
INFINITY = float("inf")
_DUMP_TIME = 0.1
_DEAF = 0.01
_LOOK_AGAIN = 2.0
_LISTENS_WITHIN = 5.0


class Supervision:
    """One attempt of one job. `lock` is the descriptor that holds the job's lock; `actions` the module
    that offers its action; `on_event` is told of every
    event, in a thread of its own (see `EventDelivery`); `spare` is a worker that waits for it.
    """

    def __init__(
        self,
        folder: Path,
        lock: int,
        actions: str,
        on_event: Callable[[Event], None] | None = None,
        spare: "SpareWorker | None" = None,
    ) -> None:
        self.folder = folder
        self.lock = lock
        self._actions = actions
        self.view = JobView(folder)
        self.sleeper = Sleeper()
        self._on_event = on_event
        self._delivery: EventDelivery | None = None
        self._no_thread = False
        self._spare = spare
        self._spec = raw_spec(folder)
        keep_private(folder.parents[1])
        self._replies = LineReader(folder / REPLIES)
        self._stops_asked = 0
        self.stopped_by = 0
        self._let_go = False
        self._stopped = ""
        self._killed = False
        self._kill_at = self._deadline = INFINITY
        self._left = 0.0

    def stop(self, number: int = 0, *_: object) -> None:
        """Ask for the end, as a signal handler may; asked twice, nobody gets time to clean up."""
        self.stopped_by = number or self.stopped_by
        self._stops_asked += 1

    def let_go(self, *_: object) -> None:
        """Wait for nobody who listens: the terminal is gone. A signal handler may ask for it."""
        self._let_go = True

    def run(self) -> str:
        """See the attempt through and return its final state.

        What `on_event` raises ends the telling, not the job, and is raised once the job has ended. Raises OSError
        when not even the reserve of a full disk was enough to write the end down: the job then reads `lost`.
        """
        try:
            ending = self._attempt()
            state = conclude(self.folder, self.view.attempt, ending)
        finally:
            self._finish_telling()
        return state

    def _finish_telling(self) -> None:
        """Wait until all is told, unless the end is asked for meanwhile, or nobody may be listening any more."""
        delivery, asked = self._tell(), self._stops_asked
        if self._no_thread and self._on_event is not None:  # the job is over: nothing is held up
            for event in read_events(self.folder):
                self._on_event(event)
        if delivery is None:
            return
        delivery.finish()
        deadline = time.monotonic() + _LISTENS_WITHIN
        while not (delivery.ended or self._stops_asked > asked or (self._let_go and time.monotonic() > deadline)):
            self.sleeper.sleep(_LOOK_AGAIN)
        if delivery.error is not None:
            raise delivery.error

    def told(self) -> JobView:
        """The job as far as `on_event` was told of it, else with nothing read yet."""
        delivery = self._delivery
        return delivery.view if delivery is not None and delivery.ended else JobView(self.folder)

    def close(self) -> None:
        """Give back what it took to wait, once no signal wakes it any more."""
        if self._delivery is None or self._delivery.ended:  # else it may wake the sleeper yet
            if self._delivery is not None:
                self._delivery.join()
            self.sleeper.close()

    def _attempt(self) -> Ending:
        held: dict[str, int] | None = None
        try:
            self.view.refresh()
            held = self._take_leases()
            return Ending(stopped="cancel") if held is None else self._work(held)
        except LayerwiseError as error:
            return Ending(error=str(error))
        except OSError as error:
            if error.errno in DISK_ERRORS:
                return Ending(DISK_FULL_EXIT)
            return Ending(error=f"the job could not be run: {refusal(error) or error}")
        finally:
            self._dismiss_spare()
            for fd in (held or {}).values():
                os.close(fd)

    def _take_leases(self) -> dict[str, int] | None:
        """Name -> descriptor of each lease, once it is our turn; None when the job was cancelled."""
        line = self._line()
        if line is None:
            return {}
        while (held := line.try_take()) is None:
            if self.view.reason != line.reason:
                self._say("state", state="queued", attempt=self.view.attempt, reason=line.reason)
                self.sleeper.watch(line.folder)
                self.sleeper.watch(self.folder / REPLIES)
                continue
            if self._cancel_asked():
                line.leave()
                return None
            self.sleeper.sleep(_LOOK_AGAIN)
        return held

    def _line(self) -> leases.Waiter | None:
        wanted = int(self._spec.get("gpus", 0))
        if wanted == 0:
            slots = int(self._spec.get("cpus", 1))
            return leases.cpu_line(self.folder.parents[1], slots) if slots > 0 else None
        found = gpus.visible_gpus({**os.environ, **self._spec.get("env", {})})
        if found is None:
            self._say("warning", text="no GPU lease: neither nvidia-ml-py nor nvidia-smi is here to name the GPUs")
            return None
        return leases.gpu_line(found, wanted)

    def _say(self, kind: str, /, **fields: object) -> None:
        with journal(self.folder) as writer:
            writer.write(kind, **fields)
        self.view.refresh()
        self._tell()

    def _work(self, held: dict[str, int]) -> Ending:
        kills, log_from = oom_kills(), _size(self.folder / LOG)
        memory = MemoryWatch(self._spec)
        worker = self._start(held)
        try:
            self._watch(worker, memory)
        except BaseException:  # no descriptor left to look with, say
            worker.signal_group(signal.SIGKILL)
            worker.bury()
            raise
        self.sleeper.watch_nothing()
        sweep(self.folder)  # while the guard is there, which would do it if we were killed now
        status = worker.bury()
        oom = oom_kills() > kills
        return Ending(status, self._stopped, self._killed, oom, "", log_from, memory.held, memory.most, swept=True)

    def _watch(self, worker: WorkerProcess, memory: MemoryWatch) -> None:
        """Return when the worker has ended."""
        self._arrange(worker)
        while not worker.exited():
            self._tell()
            self._attend(worker)
            if memory.is_over(worker.pid) and not self._stopped:
                self._stop_hungry(worker, memory)
            until = min(self._kill_at, self._deadline, memory.due) - time.monotonic()
            self.sleeper.sleep(None if until == INFINITY else until, deaf=_DEAF)

    def _start(self, held: dict[str, int]) -> WorkerProcess:
        wanted = self._spec.get("gpus", 0)
        named = gpus.only(list(held) if wanted else [], os.environ) if held or not wanted else {}
        keep = [self.lock, *held.values()]
        spare, asked = self._spare, self._spec.get("env", {})
        if spare is not None and not asked and spare.take(self.folder, self.view.attempt, named, keep):
            self._spare = None
            return spare
        self._dismiss_spare()
        env = {**large_pages(), **environment(**asked), **named}
        return start_worker(self._actions, self.folder, self.view.attempt, env, keep)

    def _dismiss_spare(self) -> None:
        if self._spare is not None:
            self._spare.dismiss()
            self._spare = None

    def _arrange(self, worker: WorkerProcess) -> None:
        self.sleeper.process(worker.pidfd)
        self.sleeper.watch(self.folder / REPLIES)
        if self._on_event is not None:
            self.sleeper.watch(self.folder / JOURNAL)
        self._deadline = time.monotonic() + (self._spec.get("timeout") or INFINITY)

    def _attend(self, worker: WorkerProcess) -> None:
        now = time.monotonic()
        if self._stopped == "" and self._cancel_asked():
            self._stop_worker(worker, "cancel")
        elif now >= self._deadline and self._stopped == "":
            self._check_timeout(worker)
        if now >= self._kill_at or self._stops_asked > 1:
            worker.signal_group(signal.SIGKILL)
            self._killed, self._kill_at = True, INFINITY

    def _check_timeout(self, worker: WorkerProcess) -> None:
        """Stop the worker unless it spent the time waiting for an answer."""
        running, waiting = time_running(self.folder, self.view.attempt)
        self._left = float(self._spec["timeout"]) - running
        if self._left > 0:
            self._deadline = INFINITY if waiting else time.monotonic() + self._left
            return
        worker.signal(signal.SIGUSR2)
        time.sleep(_DUMP_TIME)
        self._stop_worker(worker, "timeout")

    def _stop_worker(self, worker: WorkerProcess, why: str) -> None:
        self._stopped = why
        self._deadline = INFINITY
        self._kill_at = time.monotonic() + GRACE
        worker.signal_group(signal.SIGTERM)

    def _stop_hungry(self, worker: WorkerProcess, memory: MemoryWatch) -> None:
        self._stopped, memory.due = "memory", INFINITY
        worker.signal(signal.SIGUSR2)
        self._kill_at = time.monotonic() + _DUMP_TIME

    def _cancel_asked(self) -> bool:
        replies = [reply for reply in self._replies.read() if reply.get("attempt") == self.view.attempt]
        if replies and self._left > 0:
            self._deadline = time.monotonic() + self._left
        return self._stops_asked > 0 or any(reply.get("type") == "cancel" for reply in replies)

    def _tell(self) -> "EventDelivery | None":
        """Have told what the journal holds by now; nothing is before the worker starts, which it would hold up."""
        if self._delivery is None and self._on_event is not None and not self._no_thread:
            from layerwise._tool.backends.jobs.journal.delivery import EventDelivery

            try:
                self._delivery = EventDelivery(self.folder, self._on_event, self.sleeper.wake)
            except RuntimeError:  # no more threads may be started
                self._no_thread = True
        if self._delivery is not None:
            self._delivery.look()
        return self._delivery


def time_running(folder: Path, attempt: int) -> tuple[float, bool]:
    """Seconds that an attempt has been running, without the time it waited for answers; whether it waits now."""
    total, since, state = 0.0, None, None
    for event in read_events(folder):
        if event["type"] == "state" and event.get("attempt") == attempt:
            total += max(0.0, event["t"] - since) if since is not None else 0.0
            state = event.get("state")
            since = event["t"] if state == "running" else None
    return total + (max(0.0, time.time() - since) if since is not None else 0.0), state == "waiting"


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
