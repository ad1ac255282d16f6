"""Following a compare job, and a locate job of the same sides: the rows of the Errors screen, the errors of nodes."""

import time
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.baseline.report import change_line
from layerwise._tool.debugtools.baseline.rows import ChangeRow
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import LocateResult, SuspectRow
from layerwise._tool.tui.controllers.following import Follower
from layerwise._tool.tui.presenters.compare_text import rule_text, side_names
from layerwise._tool.tui.state.debugging import compare_of
from layerwise._tool.tui.state.error_table import FAILED, PASSED, ErrorTable
from layerwise._tool.tui.state.job_rows import RunFacts, RunResult
from layerwise._tool.tui.state.jobs import comparison_params, other_model
from layerwise._tool.tui.state.session import NodeError, Session
from layerwise._tool.tui.state.shared import AppState

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex


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
            self._app.say(f"job {job}: {in_words(error)}", "bad")
            return attempt
        facts = self.state.facts
        facts.runners = side_names(compare.runners)
        self.state.other = other_model(view.spec, self._app.session.model)
        self._nodes.shown = not self.state.other
        if self.state.other:
            facts.runners[0] = f"{self.state.other}: {facts.runners[0]}"
        facts.tolerance = rule_text(compare)
        facts.iterations = compare.feeds.iterations or 1
        return attempt

    def take(self, event: Event) -> None:
        self.state.facts.take(event)
        handler = getattr(self, f"_on_{event.get('type')}", None)
        if handler is not None:
            handler(event, self.state.facts)

    def _on_row(self, event: Event, facts: RunFacts) -> None:
        if event["table"] == "layers":
            row = msgspec.convert(event["row"], LayerRow)
            self._nodes.note(self.state.table.add(row))
            facts.iteration = max(facts.iteration, row.iteration)
        elif event["table"] == "suspects":
            self.state.accuse(msgspec.convert(event["row"], SuspectRow))
        elif event["table"] == "baseline":
            change = msgspec.convert(event["row"], ChangeRow)
            self.state.evidence[change.layer] = f"since the baseline: {change_line(change)}"

    def _on_dropped(self, event: Event, facts: RunFacts) -> None:
        if "layers" not in (event.get("kept") or []):
            self.state.drop()
            self._nodes.forget(self.state.table)
            self._app.session.set_errors({})
            facts.iteration = 0

    def _on_result(self, event: Event, facts: RunFacts) -> None:
        facts.result = msgspec.convert(event["data"], RunResult)
        facts.iterations = facts.result.iterations or facts.iterations
        self.state.table.imprecise = self.state.table.imprecise or bool(facts.result.level)

    def show(self) -> None:
        self.state.refresh()
        self._nodes.publish(final=not self.state.facts.live)
        self.state.on_change.emit()


class LocalErrors(Follower):
    """Watches the jobs for the newest locate job that is later than the comparison and has its sides and inputs."""

    def __init__(self, app: AppState) -> None:
        super().__init__(app)
        self.state = app.errors
        self._job = 0
        self._table = self.state.table
        self.listen(app.jobs.on_change.subscribe(self._look), app.session.on_compare_job.subscribe(self._begin))
        self._look()

    def _begin(self) -> None:
        self.stop()
        self._job = 0
        self._look()

    def _look(self) -> None:
        found = self._newest()
        if found and (found != self._job or self._table is not self.state.table):
            self._job, self._table = found, self.state.table
            self.follow(found)

    def _newest(self) -> int:
        """The locate job to take local errors from, 0 if there is none."""
        spec, shown = self.state.spec, self._shown()
        if spec is None or shown is None:
            return 0
        later = (view.id for view in self._app.jobs.views if view.created > shown.created and self._fits(view, spec))
        return max(later, default=0)

    def _shown(self) -> JobView | None:
        """The comparison on view; None for a locate job, whose rows have local errors of their own."""
        view = next((view for view in self._app.jobs.views if str(view.id) == self.state.job), None)
        spec = self._app.jobs.spec(view) if view else None
        return view if spec is not None and spec.action == "compare" else None

    def _fits(self, view: JobView, spec: CompareSpec) -> bool:
        job = self._app.jobs.spec(view)
        if job is None or job.action != "locate" or view.state in ("failed", "cancelled", "lost", "damaged"):
            return False
        compare, shown = compare_of(job.params), self._shown()
        mine = self._app.jobs.spec(shown) if shown else None
        same_folder = mine is not None and mine.cwd in ("", job.cwd)
        return same_folder and compare is not None and _what(compare) == _what(spec)

    def take(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "progress" and event.get("total"):
            self.state.locating = f"locating {event.get('done', 0):g} of {event['total']:g}"
        elif kind == "row" and event["table"] == "layers":
            self.state.table.join(msgspec.convert(event["row"], LayerRow))
        elif kind == "row" and event["table"] == "suspects":
            self.state.accuse(msgspec.convert(event["row"], SuspectRow))
        elif kind == "result":
            self.state.table.imprecise = bool(msgspec.convert(event["data"], LocateResult).level)
        elif kind == "state" and event.get("state") == "done":
            self.state.locating = f"local errors of job {self._job}"
            self._app.session.on_errors.emit()
        elif kind == "state" and event.get("state") in ("failed", "cancelled", "lost"):
            self.state.locating = f"job {self._job}, locate: {event['state']}"

    def show(self) -> None:
        self.state.refresh()
        self.state.on_change.emit()


def _what(spec: CompareSpec) -> bytes:
    """What is run on what, as bytes that compare."""
    return msgspec.json.encode((spec.model, spec.runners, spec.feeds))


PUBLISH_EVERY = 2.0


class NodeErrors:
    """Collects rows as they come; publishes to the session every two seconds and at the end.

    shown: they are of the model that is open; those of another are not published.
    """

    shown = True

    def __init__(self, session: Session, table: ErrorTable) -> None:
        self._session = session
        self._table = table
        self._new: list[int] = []
        self._worst: dict[int, NodeError] = {}
        self._published = 0.0

    def forget(self, table: ErrorTable) -> None:
        """Begin anew, with another table."""
        self._table = table
        self._new, self._worst, self._published = [], {}, 0.0

    def note(self, place: int) -> None:
        """A row of the table came or changed."""
        self._new.append(place)

    def publish(self, final: bool) -> None:
        """Give the session what is new, if it is time."""
        index = self._session.index
        early = not final and time.monotonic() - self._published < PUBLISH_EVERY
        if index is None or not self.shown or not self._new or early:
            return
        for place in self._new:
            node = node_of_row(index, self._table, place)
            if node >= 0:
                self._take(node, place)
        self._new = []
        self._published = time.monotonic()
        self._session.set_errors(dict(self._worst))

    def _take(self, node: int, place: int) -> None:
        verdict = int(self._table.verdicts()[place])
        passed = None if verdict not in (FAILED, PASSED) else verdict == PASSED
        codes, kinds = self._table.labels("finding")
        largest, finding = float(self._table.numbers("max_abs")[place]), kinds[int(codes[place])]
        found = NodeError(largest, passed, finding, place, self._table)
        old = self._worst.get(node)
        if old is None or _rank(found) >= _rank(old):
            self._worst[node] = found


def node_of_row(index: "GraphIndex", table: ErrorTable, place: int) -> int:
    """The node that a row of the table is about, -1 if the graph has none.

    It is the operator that the row names, which need not be the one that writes the tensor: a Cast may stand for it.
    """
    tensor, name = index.find_tensor(table.tensors[place]), table.nodes[place]
    writer = index.producer(tensor) if tensor >= 0 else -1
    if not name or (writer >= 0 and index.node_name(writer) == name):
        return writer
    codes, ops = table.labels("op")
    named = index.find_node(name)
    if named >= 0 and index.node_op(named) == ops[int(codes[place])]:
        return named
    return writer


def _rank(error: NodeError) -> tuple[bool, bool, float]:
    return (error.passed is False, bool(error.finding), error.max_abs)
