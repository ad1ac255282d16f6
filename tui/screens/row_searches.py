"""What starts from a row of the error table: going to its node, searches, a bundle."""

from typing import Protocol

from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.debugging import DebugResults
from layerwise._tool.tui.controllers.errors_page import node_of_row
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.searching import Searching
from layerwise._tool.tui.state.jobs import not_of_open_model
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import run_work


class RowTable(Protocol):
    """The table on view. place: its row under the cursor, -1 if there is none."""

    @property
    def place(self) -> int: ...

    @property
    def on_module(self) -> bool:
        """Whether the cursor is on a module's row."""
        ...


class ErrorSearches(Commands, scope="errors"):
    """They are about the row under the cursor of a table."""

    def __init__(self, page: Page, table: RowTable) -> None:
        self._page, self._table, self._errors = page, table, page.state.errors
        self._searching = Searching(page)
        self._results = DebugResults(page.state)

    @command("errors.node", "the row's node in the Graph screen", keys="o", footer="graph", line="node")
    def show_node(self) -> None:
        index, place = self._page.session.index, self._table.place
        if index is None or place < 0:
            self._page.state.say("the graph is not read yet" if place >= 0 else "no row")
            return
        if self._errors.other:
            self._page.state.say(not_of_open_model(self._errors.job, self._errors.other), "warn")
            return
        node = node_of_row(index, self._errors.table, place)
        if node < 0:
            self._page.state.say("this tensor is not made by a node of the open model", "warn")
            return
        self._page.session.select_node(node)
        self._page.open("graph")

    @command("errors.reduce", "reduce: the smallest part that makes this tensor wrong", keys="d", footer="reduce",
             line="reduce")  # fmt: skip
    def reduce(self) -> None:
        if not self._is_module():
            self._searching.start("reduce", target=self._tensor_in_view())

    @command("errors.bisect", "bisect: the first node at which this tensor goes wrong", keys="b", footer="bisect",
             line="bisect")  # fmt: skip
    def bisect(self) -> None:
        if not self._is_module():
            self._searching.start("bisect", target=self._tensor_in_view())

    @command("errors.locate", "locate: the local error of every layer joins the table", keys="L", footer="locate",
             line="locate")  # fmt: skip
    def locate(self) -> None:
        self._searching.start("locate", then="its local errors join the table; 4 shows the suspects")

    def _is_module(self) -> bool:
        """Whether the cursor is on a module, which is no tensor; that is told."""
        on_module = self._table.on_module
        if on_module:
            self._page.state.say("this row is a module: enter opens it; the searches are about one of its tensors")
        return on_module

    def _tensor_in_view(self) -> str | None:
        row = self._row_in_view()
        return row.tensor if row else None

    def _row_in_view(self) -> LayerRow | None:
        place = self._table.place
        return self._errors.table.row(place) if place >= 0 else None

    @command("errors.bundle", "write a repro bundle of the row's node", keys="B", line="bundle FOLDER")
    def bundle(self, folder: str = "") -> None:
        row = self._row_in_view()
        if row and row.i >= 0:
            run_work(self._page, "debug-start", lambda: self._bundle(row, folder), Waits.JOB)
        else:
            self._page.state.say("this row has no node")

    async def _bundle(self, row: LayerRow, folder: str) -> None:
        job = self._errors.job
        target = folder or f"bundle-{job}-{row.i}"
        with self._page.state.telling():
            compare = self._searching.starter.compare()
            told = await self._results.bundle_of(int(job), compare, [row.i], row.iteration, target)
            self._page.state.say(told, "good")
