"""What the Errors screen shows: a job's table through a filter and a sort, and what is known of the run."""

import numpy as np
import numpy.typing as npt

from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.tui.state.error_filter import parse_filter
from layerwise._tool.tui.state.error_table import FAILED, PASSED, UNKNOWN, ErrorTable, Ints
from layerwise._tool.tui.state.job_rows import JobRows, RunFacts

LEAPS = ("leap", "overflow", "nan")
NOTHING, CLEAN, OPEN, WRONG, FOUND = range(5)


class ErrorsState(JobRows):
    """The rows of a comparison or a locate job.

    locating: how far the job is whose local errors join the rows, "" if none is. evidence: tensor -> what speaks
    against it.
    """

    SORTS = ("graph", "max_abs", "max_rel", "local", "rel_l2", "times", "ampl", "verdict", "op", "tensor")
    order: Ints

    def __init__(self) -> None:
        super().__init__(parse_filter)
        self.open("")

    def open(self, job: str) -> None:
        """Forget the rows shown and start on another job ("": none); filter and sort stay."""
        self.job = job
        self.spec: CompareSpec | None = None
        self.facts = RunFacts()
        self.locating = ""
        self.drop()
        self.refresh()

    def drop(self) -> None:
        """Forget the rows: the job makes them again."""
        self.table, self._seen = ErrorTable(), None
        self.evidence: dict[str, str] = {}

    @property
    def total(self) -> int:
        return len(self.table)

    def accuse(self, row: SuspectRow) -> None:
        """Take a suspect of a locate job: its diagnosis, and what speaks against it."""
        self.table.accuse(row)
        self.evidence |= dict.fromkeys(row.outputs, f"#{row.i} {row.op} {row.node}: {row.evidence}")

    def sorts_shown(self) -> list[str]:
        unknown = {"local": not self.table.has_local, "times": not self.table.has_truth}
        return [name for name in self.SORTS if not unknown.get(name)]

    def refresh(self, *, always: bool = False) -> None:
        if not always and self._seen == self.table.changes:
            return
        self._seen = self.table.changes
        order = self.table.in_graph_order()
        if self._filter is not None:
            order = order[self._filter(self.table)[order]]
        if self.sort != "graph":
            order = order[_ranks(self.table, self.sort, order)]
        self.order = order[::-1] if self.reverse else order

    def first_bad(self) -> int:
        """Return the row where the graph first goes wrong, or -1 (the job's own answer where it gave one)."""
        told = self.facts.result.first_bad
        if told is not None and told.tensor in self.table.tensors:
            rows = [p for p, name in enumerate(self.table.tensors) if name == told.tensor]
            iteration = self.table.numbers("iteration")
            return next((p for p in rows if iteration[p] == told.iteration), rows[0])
        return self.table.first_bad()

    def next_leap(self, index: int, step: int) -> int:
        """Return the next (step -1: previous) line where an error starts or leaps, else a failed one, or -1."""
        lines = np.flatnonzero((self.table.found(LEAPS) | self.table.at_fault())[self.order])
        if not len(lines):
            lines = np.flatnonzero(self.table.verdicts()[self.order] == FAILED)
        ahead = lines[lines > index] if step > 0 else lines[lines < index][::-1]
        return int(ahead[0]) if len(ahead) else -1

    def counts(self) -> tuple[int, int, int]:
        """Return how many rows failed, passed and have no verdict."""
        verdicts = self.table.verdicts()
        failed, passed, unknown = (int(np.count_nonzero(verdicts == v)) for v in (FAILED, PASSED, UNKNOWN))
        return failed, passed, unknown

    def minimap(self, height: int) -> npt.NDArray[np.int8]:
        """Return the worst severity (NOTHING … FOUND) of each of `height` equal parts of the list."""
        if height <= 0 or not len(self.order):
            return np.zeros(max(height, 0), np.int8)
        severity = self._severity()[self.order]
        lines = len(severity)
        buckets = np.arange(lines) * height // max(lines, height)
        worst = np.zeros(height, np.int8)
        np.maximum.at(worst, buckets, severity)
        return worst

    def _severity(self) -> npt.NDArray[np.int8]:
        by_verdict = np.zeros(3, np.int8)
        by_verdict[[FAILED, PASSED, UNKNOWN]] = WRONG, CLEAN, OPEN
        severity = by_verdict[self.table.verdicts()]
        severity[(self.table.found(LEAPS) | self.table.at_fault()) & (severity == WRONG)] = FOUND
        return severity


def _ranks(table: ErrorTable, sort: str, order: Ints) -> npt.NDArray[np.intp]:
    if sort == "tensor":
        return np.array(sorted(range(len(order)), key=lambda k: table.tensors[order[k]]), np.intp)
    if sort == "op":
        codes, names = table.labels("op")
        alphabetic = np.argsort(np.argsort(np.array(names, str))) if names else np.zeros(0, np.intp)
        return np.argsort(alphabetic[codes[order]], kind="stable")
    if sort == "verdict":
        return np.argsort(table.verdicts()[order], kind="stable")
    values = table.numbers(sort)[order]
    return np.argsort(np.where(np.isnan(values), np.inf, -values), kind="stable")
