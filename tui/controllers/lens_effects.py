"""Following the newest lens on a model of the comparison on view: its effects are columns of the Errors screen."""

import msgspec

from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.jobs.journal.view import JobView
from layerwise._tool.debugtools.search.lens.rows import EffectRow
from layerwise._tool.debugtools.search.lens.spec import LensSpec
from layerwise._tool.tui.controllers.following import Follower
from layerwise._tool.tui.state.shared import AppState


class LensFollower(Follower):
    """Watches the jobs for the newest lens that measured nodes of a model of the comparison."""

    def __init__(self, app: AppState) -> None:
        super().__init__(app)
        self.state = app.errors
        self.listen(app.jobs.on_change.subscribe(self._look), app.session.on_compare_job.subscribe(self._look))
        self._look()

    def _look(self) -> None:
        number, form = self._newest()
        effects = self.state.effects
        if number == effects.job and not self.goes_on(number):
            return
        effects.begin(number, form)
        if number:
            self.follow(number, self._app.jobs.attempt(number))
        else:
            self.stop()
            self.show()

    def _newest(self) -> tuple[int, str]:
        """The lens's job and its format; 0 if there is none."""
        spec = self.state.spec
        models = set() if spec is None else {spec.model, *(runner.model for runner in spec.runners)} - {None, ""}
        for view in sorted(self._app.jobs.views, key=lambda view: -view.id) if models else ():
            found = self._lens(view)
            if found is not None and found.compare.model in models:
                return view.id, found.rounding.to
        return 0, ""

    def _lens(self, view: JobView) -> LensSpec | None:
        """The lens that a job is, if it measures nodes one by one."""
        job = self._app.jobs.spec(view)
        if job is None or job.action != "debug_lens" or view.state in ("failed", "cancelled", "lost", "damaged"):
            return None
        shown = next((self._app.jobs.spec(other) for other in self._app.jobs.views if str(other.id) == self.state.job),
                     None)  # fmt: skip
        try:
            found = msgspec.convert(job.params, LensSpec)
        except msgspec.ValidationError:
            return None
        return None if found.prove or shown is None or shown.cwd not in ("", job.cwd) else found

    def take(self, event: Event) -> None:
        if event.get("type") == "row" and event["table"] == "effects":
            self.state.effects.take(msgspec.convert(event["row"], EffectRow))
        elif event.get("type") == "dropped" and "effects" not in (event.get("kept") or []):
            self.state.effects.begin(self.state.effects.job, self.state.effects.form)

    def show(self) -> None:
        self.state.refresh(always=True)
        self.state.on_change.emit()
