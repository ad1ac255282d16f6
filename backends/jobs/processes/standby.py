"""Workers that stand ready for the next job of a process that sees many through, one after the other or side by side.

To start a worker takes a second where the processors are busy. One is made while a job runs, once that has run for a
moment, so that jobs that are over sooner cost nothing more; it is dismissed where no job takes it within a minute.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.processes.spare import SpareWorker

AFTER = 1.0  # seconds
PATIENCE = 60.0


class Standby:
    """Keeps at most as many workers ready as jobs run. `actions` is the module that offers their actions."""

    def __init__(self, actions: str, jobs: Path) -> None:
        self._actions, self._jobs = actions, jobs
        self._lock = threading.Condition()
        self._ready: deque[tuple[SpareWorker, float]] = deque()
        self._wanted: list[float] = []  # by each job that runs: when one is to be made for what follows it
        self._keeper: threading.Thread | None = None

    @contextmanager
    def one(self, *, more: bool) -> Iterator[SpareWorker | None]:
        """A worker for a job that is seen through inside, None where none is ready. more: whether other jobs follow."""
        due = time.monotonic() + AFTER
        with self._lock:
            spare = self._ready.popleft()[0] if self._ready else None
            if more:
                self._want(due)
        try:
            yield spare
        finally:
            with self._lock, suppress(ValueError):  # it has been made
                self._wanted.remove(due)

    def _want(self, due: float) -> None:
        """The kernel ends a worker with the thread that made it: one thread makes them all."""
        self._wanted.append(due)
        if self._keeper is None:
            self._keeper = threading.Thread(target=self._keep, name="standby", daemon=True)
            self._keeper.start()
        self._lock.notify()

    def _keep(self) -> None:
        while True:
            with self._lock:
                self._lock.wait(self._until())
                stale = self._stale()
                make = bool(self._wanted) and self._wanted[0] <= time.monotonic()
                if make:
                    self._wanted.pop(0)
            for spare in stale:
                spare.dismiss()
            if make:
                self._make()

    def _until(self) -> float | None:
        """Seconds until there is something to do, None where nobody knows."""
        times = [*self._wanted[:1], *(made + PATIENCE for _, made in list(self._ready)[:1])]
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _stale(self) -> list[SpareWorker]:
        found = []
        while self._ready and self._ready[0][1] + PATIENCE <= time.monotonic():
            found.append(self._ready.popleft()[0])
        return found

    def _make(self) -> None:
        with suppress(OSError, LayerwiseError):  # the next job starts its own, and says what is wrong
            spare = SpareWorker(self._actions, self._jobs)
            with self._lock:
                self._ready.append((spare, time.monotonic()))
