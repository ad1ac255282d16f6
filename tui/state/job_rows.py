"""The rows of one job through a filter and a sort, and what the job has said of itself: for the pages with a table."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.jobs.journal.schema import Event
from layerwise._tool.debugtools.compare.pairing.left_out import unasked
from layerwise._tool.debugtools.compare.result import CanaryReport, TruthResult
from layerwise._tool.debugtools.compare.rows import NotCompared, RowSummary
from layerwise._tool.tui.state.error_table import Ints
from layerwise._tool.tui.state.signal import Signal


class RunResult(Struct, frozen=True):
    """What the screen reads of the result of a comparison or a locate job; see `CompareResult` and `LocateResult`."""

    first_bad: RowSummary | None = None
    canary: CanaryReport | None = None
    truth: TruthResult | None = None
    conclusion: str = ""
    n_failed: int = 0
    nothing_compared: list[str] = []
    not_compared: list[NotCompared] = []
    iterations: int = 0
    level: float = 0.0
    runners: list[str] = []


@dataclass
class RunFacts:
    """What a job has said about itself so far."""

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

    def with_sides(self, text: str) -> str:
        """A sentence of the job with its sides called as they are on the screen."""
        names = zip(self.result.runners, self.runners, strict=False)
        for runner, side in sorted(names, key=lambda pair: -len(pair[0])):
            text = text.replace(runner, side) if runner else text
        return text

    @property
    def missing(self) -> int:
        """How many tensors (or iterations) were not compared that nobody asked to leave out."""
        return sum(map(unasked, self.result.not_compared))

    def take(self, event: Event) -> None:
        """Bring in an event about the job as a whole; any other is left alone."""
        kind = event.get("type")
        if kind == "state":
            self.state = str(event.get("state", ""))
            if self.state == "queued":
                self.result, self.card, self.warning = RunResult(), None, ""
        elif kind == "progress":
            self.done, self.total = int(event.get("done") or 0), int(event.get("total") or 0)
            self.unit, self.text = str(event.get("unit") or ""), str(event.get("text") or "")
        elif kind == "warning":
            self.warning = " ".join(str(event.get("text", "")).split())
        elif kind == "card":
            self.card = event


class JobRows:
    """A job's rows in the order in which they are shown. `on_change` comes at most 4 times a second.

    SORTS: the columns to sort by, the first to begin with. order: places of the rows shown.
    """

    SORTS: ClassVar[tuple[str, ...]]
    order: Ints | list[int]

    def __init__(self, parse: Callable[[str], Any]) -> None:
        """parse: makes a filter's test. UsageError for what is none."""
        self.on_change: Signal[[]] = Signal()
        self.facts = RunFacts()
        self.filter_text, self.filter_problem = "", ""
        self.sort, self.reverse = self.SORTS[0], False
        self._parse = parse
        self._filter: Any = None
        self._seen: object = None

    @property
    def total(self) -> int:
        """How many rows the job has given so far, whether the filter shows them or not."""
        raise NotImplementedError

    def set_filter(self, text: str, otherwise: str | None = None) -> None:
        """Apply a filter; for one that does not parse (see `filter_problem`) the last good one, or `otherwise`."""
        problem = ""
        try:
            test = self._test(text)
        except UsageError as error:
            problem = str(error)
            text = self.filter_text if otherwise is None else otherwise
            test = self._test(text)
        self._filter, self.filter_text, self.filter_problem = test, text, problem
        self.refresh(always=True)

    def _test(self, text: str) -> Any:
        return self._parse(text) if text.strip() else None

    def sorts_shown(self) -> list[str]:
        """The columns that can be sorted by now, in their order."""
        return list(self.SORTS)

    def cycle_sort(self) -> None:
        """Sort by the next column that is shown, worst first where the column is an error."""
        names = self.sorts_shown()
        place = names.index(self.sort) if self.sort in names else 0
        self.sort_by(names[(place + 1) % len(names)])

    def sort_by(self, name: str) -> None:
        """Sort by one of SORTS."""
        self.sort, self.reverse = name, False
        self.refresh(always=True)

    def reverse_sort(self) -> None:
        self.reverse = not self.reverse
        self.refresh(always=True)

    def refresh(self, *, always: bool = False) -> None:
        """Bring `order` up to date with the rows."""
        raise NotImplementedError

    def lines(self) -> int:
        """How many lines the list has."""
        return len(self.order)

    def place(self, line: int) -> int:
        """The row at a line of the list, -1 if there is none."""
        return int(self.order[line]) if 0 <= line < len(self.order) else -1

    def first(self, line: int) -> int:
        """The row at a line, or the first of those that it stands for; -1 if there is none."""
        return self.place(line)

    def anchor(self, line: int) -> object:
        """What a line is known by while lines come and go: the row's place, -1 if there is none."""
        return self.place(line)

    def line_of(self, anchor: object) -> int:
        """The line that is known by `anchor`, -1 if none is."""
        return self.index_of(anchor) if isinstance(anchor, int) and anchor >= 0 else -1

    def index_of(self, place: int) -> int:
        """The line that shows a row, -1 if the filter hides it."""
        found = np.flatnonzero(np.equal(self.order, place))
        return int(found[0]) if len(found) else -1
