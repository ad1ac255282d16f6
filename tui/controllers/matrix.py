"""Following the newest matrix of the workspace, or the one that was asked for."""

import msgspec

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.matrix.spec import MatrixSpec
from layerwise._tool.tui.controllers.following import Follower
from layerwise._tool.tui.state.shared import AppState

ACTION = "matrix"


class MatrixController(Follower):
    """Keeps the app's MatrixState up to date."""

    def __init__(self, app: AppState) -> None:
        super().__init__(app)
        self.state = app.matrix
        self.listen(app.jobs.on_change.subscribe(self._look), self.state.on_asked.subscribe(self._look))
        self._refused = 0

    def _look(self) -> None:
        job = self.state.asked or self._newest()
        if job and job != self._refused and (job != self.state.job or self.goes_on(job)):
            self._open(job)

    def _newest(self) -> int:
        specs = ((view.id, self._app.jobs.spec(view)) for view in self._app.jobs.views)
        return max((job for job, spec in specs if spec is not None and spec.action == ACTION), default=0)

    def _open(self, job: int) -> None:
        self.stop()
        try:
            spec = msgspec.convert(self._app.workspace.view(job).spec.params, MatrixSpec)
        except (LayerwiseError, msgspec.ValidationError) as error:
            self._app.say(f"job {job}: {in_words(error)}", "bad")
            self._refused, self.state.asked = job, 0
            return
        self.state.open(job, spec)
        self.follow(job, self._app.jobs.attempt(job))
        self._soon.touch()

    def take(self, event: Event) -> None:
        self.state.take(event)

    def show(self) -> None:
        self.state.on_change.emit()
