"""The jobs of the workspace as the app last saw them."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.tui.state.signal import Signal

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.journal.view import JobView
    from layerwise._tool.backends.jobs.spec import JobSpec


class JobsState:
    """Newest job first. `on_change`: some job changed, at most twice a second."""

    def __init__(self) -> None:
        self.views: list[JobView] = []
        self.on_change: Signal[[]] = Signal()
        self._specs: dict[int, JobSpec | None] = {}

    def set_views(self, views: "list[JobView]") -> None:
        """Take what the workspace has now, oldest first."""
        self.views = views[::-1]
        self._specs = {view.id: self._specs[view.id] for view in views if view.id in self._specs}
        self.on_change.emit()

    def spec(self, view: "JobView") -> "JobSpec | None":
        """What a job does, read once; None when its file cannot be read."""
        if view.id not in self._specs:
            try:
                self._specs[view.id] = view.spec
            except BadFile:
                self._specs[view.id] = None
        return self._specs[view.id]

    def attempt(self, job: int) -> int:
        """How often a job was started, 0 if it is not known."""
        return next((view.attempt for view in self.views if view.id == job), 0)

    def index_of(self, job: int) -> int:
        """The line of a job, or -1."""
        return next((line for line, view in enumerate(self.views) if view.id == job), -1)
