"""Local errors of the comparison on view: the rows of a locate job of the same sides join its rows."""

import msgspec

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import LocateResult, SuspectRow
from layerwise._tool.tui.controllers.following import Follower
from layerwise._tool.tui.state.debugging import compare_of
from layerwise._tool.tui.state.shared import AppState


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
        elif kind == "state" and event.get("state") in ("failed", "cancelled", "lost"):
            self.state.locating = f"job {self._job}, locate: {event['state']}"

    def show(self) -> None:
        self.state.refresh()
        self.state.on_change.emit()


def _what(spec: CompareSpec) -> bytes:
    """What is run on what, as bytes that compare."""
    return msgspec.json.encode((spec.model, spec.runners, spec.feeds))
