"""Following a compare job: its events become the rows and facts of the Errors screen."""

import asyncio
import time
from typing import Any

import msgspec

from backends.errors import LayerwiseError
from debugtools.compare.spec import CompareSpec
from tui.controllers.node_errors import NodeErrors
from tui.presenters.compare_text import rule_text, side_names
from tui.state.coalesce import Coalesce
from tui.state.debugging import compare_params
from tui.state.errors import RunFacts
from tui.state.shared import AppState

SLICE = 0.02
Event = dict[str, Any]


class ErrorsController:
    """Keeps the app's ErrorsState up to date with the comparison that the session has on view."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self.state = app.errors
        self._soon = Coalesce(self._show)
        self._task: asyncio.Task[None] | None = None
        self._attempt = 0
        self._nodes = NodeErrors(app.session, self.state.table)
        self._unsubscribe = (
            app.session.on_compare_job.subscribe(self._job_changed), app.jobs.on_change.subscribe(self._goes_on),
        )  # fmt: skip
        self._job_changed()

    def _goes_on(self) -> None:
        """Follow anew a job that had ended and was started again."""
        attempt = self._app.jobs.attempt(int(self.state.job or 0))
        if self._task is not None and self._task.done() and attempt > self._attempt:
            self._job_changed()

    def _job_changed(self) -> None:
        self.open(self._app.session.compare_job)

    def open(self, job: str | None) -> None:
        """Follow another job from its first event on (None: none)."""
        self._stop()
        self.state.open(job or "")
        self._nodes = NodeErrors(self._app.session, self.state.table)
        if job is not None:
            self._read_spec(job)
            self._task = asyncio.create_task(self._follow(job))
        self.state.on_change.emit()

    def close(self) -> None:
        """Stop following."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        self._stop()

    def _stop(self) -> None:
        self._soon.cancel()
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _read_spec(self, job: str) -> None:
        try:
            view = self._app.workspace.view(job)
            spec, self._attempt = view.spec, view.attempt
            params = compare_params(spec.params) if spec.action == "locate" else spec.params
            compare = self.state.spec = msgspec.convert(params, CompareSpec)
        except (LayerwiseError, msgspec.ValidationError) as error:
            self._app.say(f"job {job}: {error}", "bad")
            return
        facts = self.state.facts
        facts.runners = side_names(compare.runners)
        facts.tolerance = rule_text(compare)
        facts.iterations = compare.feeds.iterations or 1

    async def _follow(self, job: str) -> None:
        try:
            rested = time.monotonic()
            async for event in self._app.client.events(int(job)):
                self.take(event)
                if time.monotonic() - rested > SLICE:
                    await asyncio.sleep(0)
                    rested = time.monotonic()
        except LayerwiseError as error:
            self._app.say(f"job {job}: {error}", "bad")

    def take(self, event: Event) -> None:
        """Bring one event of the journal into the state."""
        handler = getattr(self, f"_on_{event.get('type')}", None)
        if handler is not None:
            handler(event, self.state.facts)
            self._soon.touch()

    def _on_state(self, event: Event, facts: RunFacts) -> None:
        facts.state = str(event.get("state", ""))
        if facts.state == "queued":
            facts.result = facts.card = None
            facts.warning = ""

    def _on_progress(self, event: Event, facts: RunFacts) -> None:
        facts.done, facts.total = int(event.get("done") or 0), int(event.get("total") or 0)
        facts.unit = str(event.get("unit") or "")

    def _on_row(self, event: Event, facts: RunFacts) -> None:
        row = event.get("row")
        if event.get("table") == "layers" and isinstance(row, dict):
            place = self.state.table.add(row)
            self._nodes.note(place)
            facts.iteration = max(facts.iteration, int(row.get("iteration") or 0))
        elif event.get("table") == "suspects" and isinstance(row, dict):
            self.state.accuse(row)

    def _on_result(self, event: Event, facts: RunFacts) -> None:
        data = event.get("data")
        facts.result = data if isinstance(data, dict) else {}
        facts.iterations = int(facts.result.get("iterations") or facts.iterations)
        self.state.table.imprecise = self.state.table.imprecise or bool(facts.result.get("level"))

    def _on_card(self, event: Event, facts: RunFacts) -> None:
        facts.card = event

    def _on_warning(self, event: Event, facts: RunFacts) -> None:
        facts.warning = str(event.get("text", ""))

    def _show(self) -> None:
        self.state.refresh()
        self._nodes.publish(final=not self.state.facts.live)
        self.state.on_change.emit()
