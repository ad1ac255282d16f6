"""Which jobs the Jobs screen shows, in which order: filtered, by age, by size, or below their models."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.tui.state.job_filter import INTERACTIVE, JobFacts, Test, parse_job_filter

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.journal.view import JobView

SORTS = ("newest", "size", "model")
BROKEN = ("failed", "lost", "damaged")
"""What a job has come to that has a card."""


class ModelHead(Struct, frozen=True):
    """A row above the jobs of a model. size: bytes of all of them."""

    model: str
    count: int
    size: float


class JobList:
    """Rows of jobs. facts: what a filter asks of one. filter_problem: why the text typed is none, "" if it is one.
    total: the jobs that are listed without a filter; size: bytes of all jobs of the workspace.
    """

    def __init__(self, facts: "Callable[[JobView], JobFacts]") -> None:
        self._facts = facts
        self.rows: list[JobView | ModelHead] = []
        self.filter_text, self.filter_problem, self.sort = "", "", SORTS[0]
        self.total, self.size = 0, 0.0
        self._test: Test = parse_job_filter("")

    def set_filter(self, text: str, otherwise: str | None = None) -> None:
        """Filter; for one that does not parse, which is a problem, by the last good one or `otherwise`."""
        problem = ""
        try:
            test = parse_job_filter(text)
        except UsageError as error:
            problem = str(error).removeprefix("filter: ")
            text = self.filter_text if otherwise is None else otherwise
            test = parse_job_filter(text)
        self._test, self.filter_text, self.filter_problem = test, text, problem

    def cycle_sort(self) -> str:
        """Take the next order, and say which."""
        self.sort = SORTS[(SORTS.index(self.sort) + 1) % len(SORTS)]
        return self.sort

    def lay(self, views: "Sequence[JobView]") -> None:
        """Take the jobs there are, the newest first."""
        self.size = float(sum(view.bytes_on_disk for view in views))
        listed = [(view, found) for view in views if self._is_listed(found := self._facts(view))]
        self.total = len(listed)
        shown = [(view, found) for view, found in listed if self._test(found)]
        if self.sort == "model":
            self.rows = _grouped(shown)
            return
        if self.sort == "size":
            shown.sort(key=lambda pair: -pair[1].size)
        self.rows = [view for view, _ in shown]

    def _is_listed(self, job: JobFacts) -> bool:
        """All jobs but the app's own worker, which starts and ends as the app needs it: when it broke, or is named."""
        return job.action != INTERACTIVE or job.state in BROKEN or INTERACTIVE in self.filter_text.lower()

    def jobs(self) -> "list[JobView]":
        """The jobs that are shown."""
        return [row for row in self.rows if not isinstance(row, ModelHead)]

    def view(self, line: int) -> "JobView | None":
        """The job of a line, None where it has none."""
        row = self.rows[line] if 0 <= line < len(self.rows) else None
        return None if isinstance(row, ModelHead) else row

    def newest(self) -> int:
        """The line of the newest job that is not the app's own worker, 0 if there is none."""
        found = ((row.id, line) for line, row in enumerate(self.rows)
                 if not isinstance(row, ModelHead) and self._facts(row).action != INTERACTIVE)  # fmt: skip
        return max(found, default=(0, 0))[1]

    def index_of(self, job: int) -> int:
        """The line of a job, or -1."""
        found = (line for line, row in enumerate(self.rows) if not isinstance(row, ModelHead) and row.id == job)
        return next(found, -1)


def _grouped(shown: "Sequence[tuple[JobView, JobFacts]]") -> "list[JobView | ModelHead]":
    """Below their models, the model with the newest job first."""
    groups: dict[str, list[tuple[JobView, JobFacts]]] = {}
    for view, found in shown:
        groups.setdefault(found.model, []).append((view, found))
    rows: list[JobView | ModelHead] = []
    for model, group in groups.items():
        rows.append(ModelHead(model, len(group), sum(found.size for _, found in group)))
        rows += [view for view, _ in group]
    return rows
