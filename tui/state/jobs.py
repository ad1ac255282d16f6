"""The jobs of the workspace as the app last saw them, and which are about a model (for `inspect --visual`, too)."""

import os
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.state.debugging import compare_params
from layerwise._tool.tui.state.job_filter import INTERACTIVE, JobFacts
from layerwise._tool.tui.state.job_list import JobList
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
        self.answered: dict[tuple[int, str], str] = {}
        """What the app answered: the job and its question -> the word."""
        self.asked = 0
        """The job that the Jobs screen comes to when it is shown next, 0: as it stands."""
        self.list = JobList(lambda view: facts_of(view, self.spec(view)))

    def set_views(self, views: "list[JobView]") -> None:
        """Take what the workspace has now, oldest first."""
        self.views = views[::-1]
        self._specs = {view.id: self._specs[view.id] for view in views if view.id in self._specs}
        self.lay()

    def lay(self) -> None:
        """Bring the list up to date with the jobs, the filter and the order."""
        self.list.lay(self.views)
        self.on_change.emit()

    def others(self) -> "list[JobView]":
        """All jobs but the app's own worker."""
        return [view for view in self.views if not is_own(self.spec(view))]

    def spec(self, view: "JobView") -> "JobSpec | None":
        """What a job does, read once; None when its file cannot be read."""
        if view.id not in self._specs:
            try:
                self._specs[view.id] = view.spec
            except BadFile:
                self._specs[view.id] = None
        return self._specs[view.id]

    def view(self, job: int | None) -> "JobView | None":
        """The job with this number, None if there is none."""
        return next((view for view in self.views if view.id == job), None)

    def attempt(self, job: int) -> int:
        """How often a job was started, 0 if it is not known."""
        view = self.view(job)
        return view.attempt if view is not None else 0

    def newest(self, model: Path | None, actions: Container[str]) -> int:
        """The newest job that does one of `actions` to a file, wherever it was started; 0 if there is none."""
        if model is None:
            return 0
        specs = ((view.id, self.spec(view)) for view in self.views)
        return max((job for job, spec in specs if spec is not None and is_about(spec, model, actions)), default=0)

    def index_of(self, job: int) -> int:
        """The line of a job, or -1."""
        return self.list.index_of(job)


COMPARING = ("compare", "locate")
"""Actions whose jobs have rows of layers."""


_OWN = ("compare", "bench")


def comparison_params(spec: "JobSpec") -> dict[str, Any]:
    """The comparison among a job's parameters (of a bench: all of them); empty where there is none."""
    return spec.params if spec.action in _OWN else compare_params(spec.params)


def model_of(spec: "JobSpec | None") -> str:
    """The name of the model file that a job is about, "" where it is about none."""
    if spec is None:
        return ""
    named = comparison_params(spec).get("model") or spec.params.get("model")
    return Path(named).name if isinstance(named, str) else ""


def indexed_model(spec: "JobSpec | None") -> Path | None:
    """The model that a job read for the app's Graph; None for any other job."""
    named = spec.params.get("path") if spec is not None and spec.action == "index" else None
    return Path(spec.cwd, named) if spec is not None and isinstance(named, str) else None


def is_own(spec: "JobSpec | None") -> bool:
    """Whether a job is the app's own worker, which waits for what the app asks."""
    return spec is not None and spec.action == INTERACTIVE


def facts_of(view: "JobView", spec: "JobSpec | None") -> JobFacts:
    """What a filter asks of a job."""
    title, action = (spec.title, spec.action) if spec is not None else ("", "")
    return JobFacts(view.id, model_of(spec), view.outcome, action, title, float(view.bytes_on_disk))


def other_model(spec: "JobSpec", model: Path | None) -> str:
    """The name of the model that a job is about, "" where that is the open one, or where none of them is named."""
    params = comparison_params(spec)
    runners = params.get("runners") or []
    named = [params.get("model"), *(runner.get("model") for runner in runners if isinstance(runner, dict))]
    paths = [Path(spec.cwd, name) for name in named if isinstance(name, str) and name]
    opened = None if model is None else os.path.realpath(model)
    if opened is None or not paths or opened in map(os.path.realpath, paths):
        return ""
    return paths[0].name


def not_of_open_model(job: int | str, other: str) -> str:
    """What is said where a row of another model's job leads to no node of the open one."""
    return f"job {job} is of {shown(other, 60)}, another model than the open one: open that to go to its nodes"


def is_about(spec: "JobSpec", model: Path, actions: Container[str]) -> bool:
    """Whether a job does one of `actions` to the file `model`, by whatever path or link it was named."""
    if spec.action not in actions:
        return False
    named = comparison_params(spec).get("model")
    return bool(named) and os.path.realpath(Path(spec.cwd, str(named))) == os.path.realpath(model)
