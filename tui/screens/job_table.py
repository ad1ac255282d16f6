"""The rows of one job as a table, with a filter, a sort and a detail of one row: for the screens that follow a job."""

from collections.abc import Sequence
from typing import Protocol

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.events import Resize

from layerwise._tool.tui.presenters.errors_page import minimap_cell
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.jobs import card_lines
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.state.errors_page import ErrorsState, RunFacts
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.state.signal import Coalesce, Signal
from layerwise._tool.tui.widgets.following import follow
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import LinesView, OneLine
from layerwise._tool.tui.widgets.virtual_list import GUTTER, FixedRows, RowModel, VirtualList

TALL = 32
FILTER_WAIT = 0.05
DETAIL_WAIT = 0.06


class Table(Protocol):
    """The rows of a job as its screen shows them: through a filter, in an order. total: how many rows there are,
    whether the filter shows them or not.
    """

    on_change: Signal[[]]
    facts: RunFacts
    filter_text: str
    filter_problem: str
    sort: str
    reverse: bool

    @property
    def total(self) -> int: ...

    def set_filter(self, text: str) -> None:
        """Apply a filter; one that does not parse sets `filter_problem`."""
        ...

    def sort_by(self, name: str) -> None: ...

    def reverse_sort(self) -> None: ...

    def place(self, line: int) -> int:
        """The row at a line of the list, -1 if there is none."""
        ...

    def index_of(self, place: int) -> int:
        """The line that shows a row, -1 if the filter hides it."""
        ...


class Minimap(LinesView):
    """The error table in one column: the worst verdict of each part of the list, and which part is in view."""

    DEFAULT_CSS = "Minimap { width: 2; height: 1fr; }"

    def __init__(self, state: ErrorsState, glyphs: Glyphs) -> None:
        super().__init__(id="minimap")
        self._state = state
        self._glyphs = glyphs

    def update_map(self, top: int, height: int) -> None:
        """Draw for a list that shows `height` rows from row `top`."""
        rows = max(1, len(self._state.order), self.size.height)
        worst = self._state.minimap(self.size.height)
        first, last = (row * self.size.height // rows for row in (top, top + height - 1))
        in_view = len(self._state.order) > height
        self.set_lines([
            minimap_cell(int(severity), in_view and first <= y <= last, self._glyphs)
            for y, severity in enumerate(worst)
        ])  # fmt: skip


class TableText(RowModel, Protocol):
    """The table as text: what stands above the list, the names of the columns, what stands behind the filter while it
    parses, and a row in full (`place` is -1 if there is none).
    """

    def head(self, cells: int) -> list[Line]: ...

    def heading(self, cells: int) -> Line: ...

    def filter_tail(self) -> Line: ...

    def detail(self, place: int, cells: int) -> list[Line]: ...


class JobTable(Container):
    """Head, filter, heading, list and detail: `#NAME-head`, `-filter`, `-heading`, `-list` and `-detail`; a minimap
    stands beside the list.

    The cursor stays on its row, wherever rows that come, a filter or a sort move it. name: of the screen. sorts: the
    columns that it can be sorted by.
    """

    def __init__(
        self, name: str, state: AppState, table: Table, text: TableText, sorts: Sequence[str], map: Minimap | None
    ) -> None:
        super().__init__()
        self._page, self._state, self._table, self._text, self._sorts, self._map = name, state, table, text, sorts, map
        self.list = VirtualList(text, glyphs=state.glyphs, id=f"{name}-list")
        self._told: list[Line] | None = None
        self._at = -1
        self._detail_soon = Coalesce(self._detail_now, DETAIL_WAIT)
        self._filter_soon = Coalesce(self._filter_now, FILTER_WAIT)

    def compose(self) -> ComposeResult:
        yield LinesView(id=f"{self._page}-head")
        yield LineInput("/ ", id=f"{self._page}-filter")
        heading = OneLine(id=f"{self._page}-heading")
        if self._map is None:
            yield heading
            yield self.list
        else:
            with Horizontal(id=f"{self._page}-body"):
                yield Vertical(heading, self.list, id=f"{self._page}-table")
                yield self._map
        yield LinesView(id=f"{self._page}-detail")

    # ── drawing ──

    def on_mount(self) -> None:
        follow(self, self._table.on_change, self.changed)
        text = self._state.session.filters.get(self._page, "")
        self._input.set_value(text)
        self._table.set_filter(text)
        self.changed()

    @property
    def _input(self) -> LineInput:
        return self.query_one(f"#{self._page}-filter", LineInput)

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.height >= TALL, "tall")

    def on_lines_view_resized(self) -> None:
        self.changed()

    def changed(self) -> None:
        """Rows or facts are others: keep the cursor on its row, paint what differs."""
        if not self.size.width:
            return
        self._show_card()
        line = self._table.index_of(self._at) if self._at >= 0 else -1
        if line >= 0:
            self.list.move_to(line)
        self.list.sync()
        head = [[(" ", ""), *line] for line in self._text.head(self.size.width - 2)]
        self.set_class(len(head) > 2, "told")
        self.query_one(f"#{self._page}-head", LinesView).set_lines(head)
        names: Line = [("  ", "head"), *self._text.heading(self.list.size.width - GUTTER)]
        self.query_one(f"#{self._page}-heading", OneLine).set_line(names)
        problem = self._table.filter_problem.removeprefix("filter: ")
        self._input.set_tail([(problem, "bad")] if problem else self._text.filter_tail())
        self._detail_soon.touch()
        self._show_map()

    def _show_map(self) -> None:
        if self._map is not None:
            self._map.update_map(self.list.top, self.list.size.height)

    def _show_card(self) -> None:
        """A job that failed before it had a row says why, and how to mend it, in the place of its rows."""
        card = None if self._table.total else self._table.facts.card
        cells = max(20, self.list.size.width - GUTTER)
        told = None if card is None else card_lines(card, cells, self._state.glyphs)
        if told != self._told:
            self._told = told
            self.list.set_model(self._text if told is None else FixedRows(told))

    def _detail_now(self) -> None:
        if not self.is_mounted:
            return
        pane = self.query_one(f"#{self._page}-detail", LinesView)
        if pane.size.height and pane.size.width:
            pane.set_lines(self._text.detail(self.place, max(20, self.size.width - 2)))

    @on(VirtualList.Highlighted)
    def _cursor_moved(self) -> None:
        """The cursor is on another row."""
        self._at = self.place
        self._detail_soon.touch()
        self._show_map()

    @property
    def place(self) -> int:
        """The table's row under the cursor, -1 if there is none."""
        return self._table.place(self.list.cursor)

    def come_to(self, place: int) -> None:
        """Put the cursor on a row of the table when it is painted next."""
        self._at = place

    # ── filter and sort ──

    def focus_filter(self) -> None:
        """Write on the filter."""
        self._input.focus()

    def filter_line(self, text: str = "") -> None:
        """Filter by an expression."""
        self._input.set_value(text)
        self._filter_now()

    @on(LineInput.Changed)
    def _filter_changed(self) -> None:
        self._filter_soon.touch()

    def _filter_now(self) -> None:
        text = self._input.value
        self._table.set_filter(text)
        if not self._table.filter_problem:
            self._state.session.remember(self._page, filter=text)
        if self._table.index_of(self._at) < 0:
            self.to_top()
        self.changed()

    @on(LineInput.Submitted)
    def _filter_done(self) -> None:
        self._filter_soon.flush()
        self.list.focus()

    def clear_filter(self) -> None:
        """Show all rows again."""
        if self._table.filter_text or self._table.filter_problem:
            self.filter_line("")

    def sort_by(self, name: str = "") -> None:
        """Sort by a column that is named."""
        if name not in self._sorts:
            self._state.say(f"columns to sort by: {', '.join(self._sorts)}", "bad")
            return
        self._table.sort_by(name)
        self.reordered()

    def columns(self, prefix: str) -> list[str]:
        """Completions of a column's name."""
        return [name for name in self._sorts if name.startswith(prefix)]

    def reverse(self) -> None:
        """Turn the order round."""
        self._table.reverse_sort()
        self.reordered()

    def reordered(self) -> None:
        """The list starts again at its top: what is worst stands there."""
        self.to_top()
        self.changed()

    def to_top(self) -> None:
        """Put the cursor on the first row."""
        self.list.move_to(0)
        self._at = self._table.place(0)
