"""What the Errors screen shows: a job's table through a filter and a sort, and what is known of the run."""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.tui.state.error_filter import parse_filter
from layerwise._tool.tui.state.error_table import FAILED, LENS, PASSED, UNKNOWN, ErrorTable, Ints
from layerwise._tool.tui.state.job_rows import JobRows, RunFacts
from layerwise._tool.tui.state.lens_effects import LensEffects
from layerwise._tool.tui.state.module_tree import ModuleHead, ModuleTree

LEAPS = ("leap", "overflow", "nan")
NOTHING, CLEAN, OPEN, WRONG, FOUND = range(5)


class Rollup(NamedTuple):
    """What the rows of a module come to, of which there are `rows`. severity: of the worst.

    low, middle, high: of the error that is shown, NaN where no row has it.
    """

    rows: int
    failed: int
    passed: int
    severity: int
    low: float
    middle: float
    high: float


class ErrorsState(JobRows):
    """The rows of a comparison or a locate job.

    per_module: rows stand below their modules, which fold. locating: how far the job is whose local errors join the
    rows, "" if none is. evidence: tensor -> what speaks against it, or how it has grown since a baseline.
    effects: what a lens measured of the nodes.
    """

    SORTS = ("graph", "max_abs", "max_rel", "local", "rel_l2", "times", "ampl", *LENS, "verdict", "op", "tensor")
    order: Ints

    def __init__(self) -> None:
        self.per_module, self._tree = False, ModuleTree()
        self.effects = LensEffects()
        super().__init__(parse_filter)
        self.open("")

    def open(self, job: str) -> None:
        """Forget the rows shown and start on another job ("": none); filter and sort stay."""
        self.job = job
        self.spec: CompareSpec | None = None
        self.other = ""
        """The model that the rows are of, where it is not the open one."""
        self.facts = RunFacts()
        self.locating = ""
        self.drop()
        self.refresh()

    def drop(self) -> None:
        """Forget the rows: the job makes them again."""
        self.table, self._seen = ErrorTable(self.effects), None
        self._worst: tuple[object, npt.NDArray[np.int8]] = (None, np.zeros(0, np.int8))
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
        unknown |= dict.fromkeys(LENS, not self.effects)
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
        if self.tree is not None:
            codes, paths = self.table.modules()
            self._tree.lay(paths, codes[self.order])

    # ── modules ──

    def fold_modules(self, on: bool) -> None:
        """Show rows below their modules, or all in one list."""
        self.per_module = on
        self.refresh(always=True)

    def kept_folds(self) -> dict[str, Any]:
        """Whether rows are shown below their modules, and which were opened, for the next session."""
        return {"modules": self.per_module, "opened": self._tree.opened}

    def fold_again(self, kept: object) -> None:
        """Fold as `kept_folds` told in an earlier session."""
        told = kept if isinstance(kept, dict) else {}
        self.per_module = bool(told.get("modules"))
        self._tree.open_again(told.get("opened"))

    @property
    def tree(self) -> ModuleTree | None:
        """The tree of modules while rows are shown in one."""
        return self._tree if self.per_module and self.table.has_modules else None

    def head(self, line: int) -> ModuleHead | None:
        """The module that a line stands for, None for a row's own."""
        return self.tree.head_at(line) if self.tree is not None else None

    def turn(self, line: int) -> int:
        """Open or fold the module of a line, or fold that of the line's row; returns the line to go to."""
        return self.tree.turn(line) if self.tree is not None else line

    def rows_at(self, line: int) -> Ints:
        """The places of all rows that a line stands for."""
        if self.tree is None:
            return self.order[line : line + 1]
        return np.asarray(self.order[self.tree.places_at(line)])

    def show(self, place: int) -> int:
        """Open what a row is folded into; returns its line, -1 if the filter hides it."""
        found = np.flatnonzero(np.equal(self.order, place))
        if self.tree is not None and len(found):
            self.tree.reveal(int(found[0]))
        return self.index_of(place)

    def lines(self) -> int:
        return len(self.order) if self.tree is None else len(self.tree)

    def place(self, line: int) -> int:
        """The row at a line of the list, -1 if there is none, or a module's."""
        if self.tree is None or not 0 <= line < len(self.tree):
            return super().place(line) if self.tree is None else -1
        return -1 if self.tree.head_at(line) else int(self.order[self.tree.place_at(line)])

    def first(self, line: int) -> int:
        head = self.head(line)
        return int(self.order[self.tree.place_at(line)]) if head and self.tree is not None else self.place(line)

    def index_of(self, place: int) -> int:
        """The line that shows a row, or the module that it is folded into; -1 if the filter hides it."""
        at = super().index_of(place)
        return at if self.tree is None or at < 0 else self.tree.row_of(at)

    def anchor(self, line: int) -> object:
        head = self.head(line)
        return ("module", head.path) if head else self.place(line)

    def line_of(self, anchor: object) -> int:
        if isinstance(anchor, tuple):
            return self.tree.row_of_module(anchor[1]) if self.tree is not None else -1
        return super().line_of(anchor)

    @property
    def metric(self) -> str:
        """The error that modules are summed up by: what is sorted by, else the local error, else rel-L2."""
        known = ("max_abs", "max_rel", "rel_l2", "local", "times", "ampl")
        return self.sort if self.sort in known else "local" if self.table.has_local else "rel_l2"

    def rollup(self, line: int) -> "Rollup":
        """What the rows of a line come to."""
        rows = self.rows_at(line)
        values = self.table.numbers(self.metric)[rows]
        values = np.sort(values[~np.isnan(values)])
        middle = float(np.median(values)) if len(values) else math.nan
        low, high = (float(values[0]), float(values[-1])) if len(values) else (math.nan, math.nan)
        verdicts, severity = self.table.verdicts()[rows], self._severity()[rows]
        failed, passed = (int(np.count_nonzero(verdicts == verdict)) for verdict in (FAILED, PASSED))
        return Rollup(len(rows), failed, passed, int(severity.max(initial=NOTHING)), low, middle, high)

    # ── jumps ──

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
        if self.tree is not None and 0 <= index < len(self.tree):
            index = self.tree.place_at(index) - (self.tree.head_at(index) is not None and step > 0)
        ahead = lines[lines > index] if step > 0 else lines[lines < index][::-1]
        return self.show(int(self.order[ahead[0]])) if len(ahead) else -1

    def counts(self) -> tuple[int, int, int]:
        """Return how many rows failed, passed and have no verdict."""
        verdicts = self.table.verdicts()
        failed, passed, unknown = (int(np.count_nonzero(verdicts == v)) for v in (FAILED, PASSED, UNKNOWN))
        return failed, passed, unknown

    def minimap(self, height: int) -> npt.NDArray[np.int8]:
        """Return the worst severity (NOTHING … FOUND) of each of `height` equal parts of the list."""
        if height <= 0 or not len(self.order):
            return np.zeros(max(height, 0), np.int8)
        severity = self._severity()
        if self.tree is None:
            severity = severity[self.order]
        else:
            of_lines = (severity[self.rows_at(line)].max(initial=NOTHING) for line in range(self.lines()))
            severity = np.fromiter(of_lines, np.int8)
        lines = len(severity)
        buckets = np.arange(lines) * height // max(lines, height)
        worst = np.zeros(height, np.int8)
        np.maximum.at(worst, buckets, severity)
        return worst

    def _severity(self) -> npt.NDArray[np.int8]:
        state = (self.table.changes, self.table.imprecise)
        if self._worst[0] != state:
            self._worst = (state, self._severities())
        return self._worst[1]

    def _severities(self) -> npt.NDArray[np.int8]:
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
