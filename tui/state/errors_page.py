"""What the Errors screen shows: a job's table through a filter and a sort, and what is known of the run."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.debugtools.compare.pairing.left_out import unasked
from layerwise._tool.debugtools.compare.rows import CanaryReport, NotCompared, RowSummary
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.tui.state.error_filter import Test, parse_filter
from layerwise._tool.tui.state.error_table import FAILED, PASSED, UNKNOWN, ErrorTable, Ints
from layerwise._tool.tui.state.signal import Signal

SORTS = ("graph", "max_abs", "max_rel", "local", "rel_l2", "ampl", "verdict", "op", "tensor")
LEAPS = ("leap", "overflow", "nan")
NOTHING, CLEAN, OPEN, WRONG, FOUND = range(5)


class RunResult(Struct, frozen=True):
    """What the screen reads of the result of a comparison or a locate job; see `CompareResult` and `LocateResult`."""

    first_bad: RowSummary | None = None
    canary: CanaryReport | None = None
    nothing_compared: list[str] = []
    not_compared: list[NotCompared] = []
    iterations: int = 0
    level: float = 0.0


@dataclass
class RunFacts:
    """What a compare job has said about itself so far."""

    state: str = ""
    runners: list[str] = field(default_factory=list)
    iterations: int = 1
    iteration: int = 0
    done: int = 0
    total: int = 0
    unit: str = ""
    text: str = ""
    tolerance: str = ""
    warning: str = ""
    result: RunResult = field(default_factory=RunResult)
    card: Event | None = None

    @property
    def live(self) -> bool:
        return self.state in ("queued", "running", "waiting")

    @property
    def missing(self) -> int:
        """How many tensors (or iterations) were not compared that nobody asked to leave out."""
        return sum(map(unasked, self.result.not_compared))


class ErrorsState:
    """One job's rows, in the order in which they are shown. `on_change` comes at most 4 times a second.

    locating: how far the job is whose local errors join the rows, "" if none is. evidence: tensor -> what speaks
    against it.
    """

    def __init__(self) -> None:
        self.on_change: Signal[[]] = Signal()
        self.job: str = ""
        self.spec: CompareSpec | None = None
        self.table = ErrorTable()
        self.facts = RunFacts()
        self.filter_text = ""
        self.filter_problem = ""
        self.sort = "graph"
        self.reverse = False
        self.order: Ints = np.zeros(0, np.int32)
        self.locating = ""
        self.evidence: dict[str, str] = {}
        self._filter: Test | None = None
        self._seen = -1

    def open(self, job: str) -> None:
        """Forget the rows shown and start on another job; filter and sort stay."""
        self.job = job
        self.spec = None
        self.table = ErrorTable()
        self.facts = RunFacts()
        self.locating, self.evidence = "", {}
        self._seen = -1
        self.refresh()

    def drop(self) -> None:
        """Forget the rows: the job makes them again."""
        self.table, self.evidence, self._seen = ErrorTable(), {}, -1

    @property
    def total(self) -> int:
        """How many rows the job has given so far."""
        return len(self.table)

    def accuse(self, row: SuspectRow) -> None:
        """Take a suspect of a locate job: its diagnosis, and what speaks against it."""
        self.table.accuse(row)
        self.evidence |= dict.fromkeys(row.outputs, f"#{row.i} {row.op} {row.node}: {row.evidence}")

    def set_filter(self, text: str) -> None:
        """Apply a filter; one that does not parse leaves the last good one and sets `filter_problem`."""
        try:
            self._filter = parse_filter(text) if text.strip() else None
            self.filter_problem = ""
            self.filter_text = text
        except UsageError as error:
            self.filter_problem = str(error)
        self._seen = -1
        self.refresh()

    def cycle_sort(self) -> None:
        """Sort by the next column that is shown, worst first where the column is an error."""
        names = [name for name in SORTS if name != "local" or self.table.has_local]
        place = names.index(self.sort) if self.sort in names else 0
        self.sort_by(names[(place + 1) % len(names)])

    def sort_by(self, name: str) -> None:
        """Sort by one of SORTS."""
        self.sort = name
        self.reverse = False
        self._seen = -1
        self.refresh()

    def reverse_sort(self) -> None:
        self.reverse = not self.reverse
        self._seen = -1
        self.refresh()

    def refresh(self) -> bool:
        """Bring `order` up to date with the table; false if nothing changed."""
        if self._seen == self.table.changes:
            return False
        self._seen = self.table.changes
        order = self.table.in_graph_order()
        if self._filter is not None:
            order = order[self._filter.mask(self.table)[order]]
        if self.sort != "graph":
            order = order[_ranks(self.table, self.sort, order)]
        self.order = order[::-1] if self.reverse else order
        return True

    def place(self, index: int) -> int:
        """Return the table's row at a line of the list, or -1."""
        return int(self.order[index]) if 0 <= index < len(self.order) else -1

    def index_of(self, place: int) -> int:
        """Return the line of the list that shows a row of the table, or -1 if the filter hides it."""
        found = np.flatnonzero(self.order == place)
        return int(found[0]) if len(found) else -1

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
