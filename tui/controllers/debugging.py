"""Following the search on view: its events become the state of the Debug screen."""

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.tui.controllers.following import Follower
from layerwise._tool.tui.state.debugging import SEARCHES, DebugState
from layerwise._tool.tui.state.shared import AppState


class DebugController(Follower):
    """Keeps the app's DebugState up to date with the search that the session has on view."""

    def __init__(self, app: AppState) -> None:
        super().__init__(app)
        self.state: DebugState = app.debug
        self.listen(app.session.on_debug_job.subscribe(self._job_changed), app.jobs.on_change.subscribe(self._look))
        self._job_changed()

    def _look(self) -> None:
        if self.goes_on(self.state.job):
            self._job_changed()

    def _job_changed(self) -> None:
        self.stop()
        self.state.open(0, "", {})
        job = self._app.session.debug_job
        if job is not None:
            self._open(job)
        self.state.on_change.emit()

    def _open(self, job: int) -> None:
        try:
            view = self._app.workspace.view(job)
            spec, attempt = view.spec, view.attempt
        except LayerwiseError as error:
            self._app.say(f"job {job}: {error}", "bad")
            return
        if spec.action in SEARCHES:
            self.state.open(job, spec.action, spec.params)
            self.follow(job, attempt)

    def take(self, event: Event) -> None:
        self.state.take(event)

    def show(self) -> None:
        self.state.on_change.emit()
