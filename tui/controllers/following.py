"""Following one job: its events become state, in slices that leave the screen its turn."""

import asyncio
import time
from collections.abc import Callable

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.schema import UNEXPECTED, Event
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.state.signal import Coalesce

SLICE = 0.02


class Follower:
    """Base of what keeps a part of the app's state up to date with one job at a time.

    Subclass with `take` and `show`; subscribe with `listen`, and call `follow` when another job is to be followed.
    """

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._soon = Coalesce(self.show)
        self._task: asyncio.Task[None] | None = None
        self._attempt = 0
        self._unsubscribe: list[Callable[[], None]] = []

    def take(self, event: Event) -> None:
        """Bring one event of the job's journal into the state."""
        raise NotImplementedError

    def show(self) -> None:
        """Announce what has changed; at most 4 times a second."""
        raise NotImplementedError

    def listen(self, *unsubscribe: Callable[[], None]) -> None:
        """Keep what ends subscriptions, for `close`."""
        self._unsubscribe += unsubscribe

    def close(self) -> None:
        """Stop following, and listening."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self.stop()

    def follow(self, job: int, attempt: int = 0) -> None:
        """Take the events of a job from its first on, in place of another's."""
        self.stop()
        self._attempt = max(1, attempt)  # 0: the list of jobs has not yet told of it
        self._task = asyncio.create_task(self._read(job))

    def stop(self) -> None:
        """Follow no job."""
        self._soon.cancel()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def goes_on(self, job: int) -> bool:
        """Whether a job that was followed to its end has been started again."""
        return self._task is not None and self._task.done() and self._app.jobs.attempt(job) > self._attempt

    async def _read(self, job: int) -> None:
        try:
            rested = time.monotonic()
            async for event in self._app.client.events(job):
                self._give(event)
                self._soon.touch()
                if time.monotonic() - rested > SLICE:
                    await asyncio.sleep(0)
                    rested = time.monotonic()
            damage = (await self._app.client.view(job)).damage
            if damage:
                self._app.say(f"job {job} is damaged: {damage}", "bad")
        except LayerwiseError as error:
            self._app.say(f"job {job}: {error}", "bad")

    def _give(self, event: Event) -> None:
        """What is in a row nobody has checked: one that the state cannot take is left out of it."""
        try:
            self.take(event)
        except UNEXPECTED:
            self._app.say(f"event {event['n']} of the job is not as it should be, and is left out", "bad")
