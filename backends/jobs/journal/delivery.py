"""Telling somebody of a job's events from a thread of its own, so that one who is slow to listen holds up no job."""

import threading
from collections.abc import Callable
from pathlib import Path

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.journal.view import JobView


class EventDelivery:
    """Gives every event of the job's journal to `on_event`, in order; `done` is called once nothing more is told.

    Nothing is kept for a slow listener but the place in the journal. `on_event` is called in another thread, which
    `view` belongs to until it has ended: the job, as what was told has it.
    """

    def __init__(self, folder: Path, on_event: Callable[[Event], None], done: Callable[[], None]) -> None:
        self.error: BaseException | None = None
        self.ended = False
        self.view = JobView(folder)
        self._on_event = on_event
        self._done = done
        self._news = threading.Event()
        self._last = False
        self._thread = threading.Thread(target=self._run, name="telling", daemon=True)
        self._thread.start()

    def look(self) -> None:
        """The journal has grown."""
        self._news.set()

    def finish(self) -> None:
        """What the journal holds now is all."""
        self._last = True
        self._news.set()

    def join(self) -> None:
        """Wait for the thread, which leaves at once after `done`."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while self._tell_all():
                pass
        except BaseException as error:
            self.error = error
        self.ended = True
        self._done()

    def _tell_all(self) -> bool:
        """Tell what is new; whether there may be more."""
        self._news.wait()
        self._news.clear()
        last = self._last
        for event in self.view.news():
            self._on_event(event)
        return not last
