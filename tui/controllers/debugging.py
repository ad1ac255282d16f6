"""Following the search on view: its events become the state of the Debug screen."""

import asyncio
import time

from backends.errors import LayerwiseError
from tui.state.coalesce import Coalesce
from tui.state.debugging import SEARCHES, DebugState
from tui.state.shared import AppState

SLICE = 0.02


class DebugController:
    """Keeps the app's DebugState up to date with the search that the session has on view."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self.state: DebugState = app.debug
        self._soon = Coalesce(self.state.on_change.emit)
        self._task: asyncio.Task[None] | None = None
        self._attempt = 0
        self._unsubscribe = (
            app.session.on_debug_job.subscribe(self._job_changed), app.jobs.on_change.subscribe(self._goes_on),
        )  # fmt: skip
        self._job_changed()

    def close(self) -> None:
        """Stop following."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._stop()

    def _goes_on(self) -> None:
        """Follow anew a job that had ended and was started again."""
        attempt = self._app.jobs.attempt(self.state.job)
        if self._task is not None and self._task.done() and attempt > self._attempt:
            self._job_changed()

    def _job_changed(self) -> None:
        self._stop()
        self.state.open(0, "", {})
        job = self._app.session.debug_job
        if job is not None:
            self._open(job)
        self.state.on_change.emit()

    def _open(self, job: int) -> None:
        try:
            view = self._app.workspace.view(job)
            spec, self._attempt = view.spec, view.attempt
        except LayerwiseError as error:
            self._app.say(f"job {job}: {error}", "bad")
            return
        if spec.action in SEARCHES:
            self.state.open(job, spec.action, spec.params)
            self._task = asyncio.create_task(self._follow(job))

    def _stop(self) -> None:
        self._soon.cancel()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def _follow(self, job: int) -> None:
        try:
            rested = time.monotonic()
            async for event in self._app.client.events(job):
                self.state.take(event)
                self._soon.touch()
                if time.monotonic() - rested > SLICE:
                    await asyncio.sleep(0)
                    rested = time.monotonic()
        except LayerwiseError as error:
            self._app.say(f"job {job}: {error}", "bad")
