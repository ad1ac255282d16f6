"""Following a compare job: its events become the rows and facts of the Errors screen."""

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.tui.controllers.following import Follower
from layerwise._tool.tui.controllers.node_errors import NodeErrors
from layerwise._tool.tui.presenters.compare_text import rule_text, side_names
from layerwise._tool.tui.state.about import comparison_params
from layerwise._tool.tui.state.errors_page import RunFacts, RunResult
from layerwise._tool.tui.state.shared import AppState


class ErrorsController(Follower):
    """Keeps the app's ErrorsState up to date with the comparison that the session has on view."""

    def __init__(self, app: AppState) -> None:
        super().__init__(app)
        self.state = app.errors
        self._nodes = NodeErrors(app.session, self.state.table)
        self.listen(
            app.session.on_compare_job.subscribe(self._job_changed),
            app.session.on_index.subscribe(self._index_changed),
            app.jobs.on_change.subscribe(self._look),
        )
        self._job_changed()

    def _look(self) -> None:
        if self.goes_on(int(self.state.job or 0)):
            self._job_changed()

    def _job_changed(self) -> None:
        self.open(self._app.session.compare_job)

    def _index_changed(self) -> None:
        """The graph may be read after the last row has come, and read anew with other numbers of its nodes."""
        self._nodes = NodeErrors(self._app.session, self.state.table)
        for place in range(len(self.state.table)):
            self._nodes.note(place)
        self._nodes.publish(final=True)

    def open(self, job: str | None) -> None:
        """Follow another job from its first event on (None: none)."""
        self.stop()
        self.state.open(job or "")
        self._nodes = NodeErrors(self._app.session, self.state.table)
        if job is not None:
            self.follow(int(job), self._read_spec(job))
        self.state.on_change.emit()

    def _read_spec(self, job: str) -> int:
        """Take in what the job is to do; which attempt it is at."""
        attempt = 0
        try:
            view = self._app.workspace.view(job)
            attempt = view.attempt
            compare = self.state.spec = msgspec.convert(comparison_params(view.spec), CompareSpec)
        except (LayerwiseError, msgspec.ValidationError) as error:
            self._app.say(f"job {job}: {error}", "bad")
            return attempt
        facts = self.state.facts
        facts.runners = side_names(compare.runners)
        facts.tolerance = rule_text(compare)
        facts.iterations = compare.feeds.iterations or 1
        return attempt

    def take(self, event: Event) -> None:
        handler = getattr(self, f"_on_{event.get('type')}", None)
        if handler is not None:
            handler(event, self.state.facts)

    def _on_state(self, event: Event, facts: RunFacts) -> None:
        facts.state = str(event.get("state", ""))
        if facts.state == "queued":
            facts.result, facts.card, facts.warning = RunResult(), None, ""

    def _on_progress(self, event: Event, facts: RunFacts) -> None:
        facts.done, facts.total = int(event.get("done") or 0), int(event.get("total") or 0)
        facts.unit, facts.text = str(event.get("unit") or ""), str(event.get("text") or "")

    def _on_row(self, event: Event, facts: RunFacts) -> None:
        if event["table"] == "layers":
            row = msgspec.convert(event["row"], LayerRow)
            self._nodes.note(self.state.table.add(row))
            facts.iteration = max(facts.iteration, row.iteration)
        elif event["table"] == "suspects":
            self.state.accuse(msgspec.convert(event["row"], SuspectRow))

    def _on_dropped(self, event: Event, facts: RunFacts) -> None:
        if "layers" not in (event.get("kept") or []):
            self.state.drop()
            self._nodes = NodeErrors(self._app.session, self.state.table)
            self._app.session.set_errors({})
            facts.iteration = 0

    def _on_result(self, event: Event, facts: RunFacts) -> None:
        facts.result = msgspec.convert(event["data"], RunResult)
        facts.iterations = facts.result.iterations or facts.iterations
        self.state.table.imprecise = self.state.table.imprecise or bool(facts.result.level)

    def _on_card(self, event: Event, facts: RunFacts) -> None:
        facts.card = event

    def _on_warning(self, event: Event, facts: RunFacts) -> None:
        facts.warning = " ".join(str(event.get("text", "")).split())

    def show(self) -> None:
        self.state.refresh()
        self._nodes.publish(final=not self.state.facts.live)
        self.state.on_change.emit()
