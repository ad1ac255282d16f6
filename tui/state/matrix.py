"""A matrix as a grid, from a job's events: rows are models, columns are actions with their sides and feeds."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from layerwise._tool.backends.jobs.journal.schema import UNEXPECTED, Event
from layerwise._tool.debugtools.matrix.rows import CellRow, Change, MatrixResult, StartRow
from layerwise._tool.debugtools.matrix.spec import CellSpec

BAD = frozenset({"failed", "error", "lost", "refused"})


class Column(Struct, frozen=True):
    """A column. action is "" where the matrix has but one."""

    side: str
    feed: str
    action: str

    @property
    def words(self) -> list[str]:
        return [word for word in (self.side, self.feed, self.action) if word]


class MatrixGrid:
    """Which cell is where, and what is known of each. Fed with the events of the matrix's job."""

    def __init__(self, cells: Sequence[CellSpec]) -> None:
        self.cells = cells
        self.models = list(dict.fromkeys(cell.model for cell in cells))
        several = len({cell.action for cell in cells}) > 1
        self._columns = {number: Column(cell.side, cell.feed, cell.action if several or not cell.side else "")
                         for number, cell in enumerate(cells)}  # fmt: skip
        self.columns = list(dict.fromkeys(self._columns.values()))
        self._at = {(cell.model, self._columns[number]): number for number, cell in enumerate(cells)}
        self.ended: dict[int, CellRow] = {}
        self.jobs: dict[int, int] = {}
        self.changes: dict[tuple[str, str, str, str], Change] = {}
        self.result: MatrixResult | None = None

    def number(self, row: int, column: int) -> int:
        """The cell's number, -1 where the matrix has none."""
        if not (0 <= row < len(self.models) and 0 <= column < len(self.columns)):
            return -1
        return self._at.get((self.models[row], self.columns[column]), -1)

    def verdict(self, number: int) -> str:
        """A cell's verdict, `running`, or "" for one that waits."""
        if number in self.ended:
            return self.ended[number].receipt.verdict
        return "running" if number in self.jobs else ""

    def job(self, number: int) -> int:
        """The job of a cell, 0 for one that has none yet."""
        return self.ended[number].receipt.job if number in self.ended else self.jobs.get(number, 0)

    def change(self, number: int) -> Change | None:
        """How a cell has changed since the run that the matrix was held against; known when all have ended."""
        cell = self.cells[number]
        return self.changes.get((cell.model, cell.side, cell.feed, cell.action))

    def take(self, event: Event) -> bool:
        """Take an event in; whether anything is another. A damaged one is left out."""
        try:
            return self._take(event)
        except (msgspec.ValidationError, *UNEXPECTED):
            return False

    def _take(self, event: Event) -> bool:
        kind, table = event["type"], event.get("table")
        if kind == "row" and table == "cells":
            row = msgspec.convert(event["row"], CellRow)
            if 0 <= row.number < len(self.cells):
                self.ended[row.number] = row
            return True
        if kind == "row" and table == "started":
            started = msgspec.convert(event["row"], StartRow)
            self.jobs[started.number] = started.job
            return True
        if kind == "dropped":
            self.ended, self.jobs, self.changes, self.result = {}, {}, {}, None
            return True
        if kind == "result":
            self.result = msgspec.convert(event["data"], MatrixResult)
            self.changes = {(each.model, each.side, each.feed, each.action): each for each in self.result.changes}
            return True
        return False

    def counts(self) -> dict[str, int]:
        """How many cells there are of each verdict, `running` and "waiting" too."""
        found: dict[str, int] = {}
        for number in range(len(self.cells)):
            word = self.verdict(number) or "waiting"
            found[word] = found.get(word, 0) + 1
        return found
