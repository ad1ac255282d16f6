"""What the screens share that follow one job: a table of its rows with a filter, a sort and a detail of one row."""

from collections.abc import Sequence
from typing import Protocol

from textual import on
from textual.events import Resize

from layerwise._tool.tui.presenters.jobs import card_lines
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.coalesce import Coalesce
from layerwise._tool.tui.state.errors import RunFacts
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.state.signal import Signal
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import LinesView, OneLine
from layerwise._tool.tui.widgets.virtual_list import GUTTER, FixedRows, RowModel, VirtualList

TALL = 32
FILTER_WAIT = 0.05
DETAIL_WAIT = 0.06


class Table(Protocol):
    """The rows of a job as its screen shows them: through a filter, in an order."""

    on_change: Signal[[]]
    facts: RunFacts
    filter_text: str
    filter_problem: str
    sort: str
    reverse: bool

    @property
    def total(self) -> int:
        """How many rows there are, whether the filter shows them or not."""
        ...

    def set_filter(self, text: str) -> None:
        """Apply a filter; one that does not parse sets `filter_problem`."""
        ...

    def sort_by(self, name: str) -> None:
        """Sort by a column."""
        ...

    def reverse_sort(self) -> None:
        """Turn the order round."""
        ...

    def place(self, line: int) -> int:
        """The row at a line of the list, -1 if there is none."""
        ...

    def index_of(self, place: int) -> int:
        """The line that shows a row, -1 if the filter hides it."""
        ...


class JobTable(Page):
    """Base of a screen that follows one job. Subclasses compose `#SCOPE-head`, `-filter`, `-heading` and `-detail`, and
    declare the commands, whose handlers are here.

    The cursor stays on its row, wherever rows that come, a filter or a sort move it.
    """

    SORTS: Sequence[str] = ()

    def __init__(self, state: AppState, table: Table) -> None:
        super().__init__(state)
        self.table = table
        self._rows = self.rows_model()
        self._list = VirtualList(self._rows, glyphs=state.glyphs, id=f"{self.SCOPE}-list")
        self._told: list[Line] | None = None
        self._at = -1
        self._detail_soon = Coalesce(self._detail_now, DETAIL_WAIT)
        self._filter_soon = Coalesce(self._filter_now, FILTER_WAIT)

    # ── what a screen says ──

    def rows_model(self) -> RowModel:
        """The rows of the list as they are drawn."""
        raise NotImplementedError

    def head(self, cells: int) -> list[Line]:
        """What stands above the list."""
        raise NotImplementedError

    def heading(self, cells: int) -> Line:
        """The names of the columns."""
        raise NotImplementedError

    def filter_tail(self) -> Line:
        """What stands behind the filter while it parses."""
        raise NotImplementedError

    def detail(self, place: int, cells: int) -> list[Line]:
        """The row under the cursor in full."""
        raise NotImplementedError

    # ── drawing ──

    def on_mount(self) -> None:
        self.follow(self.table.on_change, self.changed)
        text = self.session.filters.get(self.SCOPE, "")
        self._input.set_value(text)
        self.table.set_filter(text)
        self.changed()

    @property
    def _input(self) -> LineInput:
        return self.query_one(f"#{self.SCOPE}-filter", LineInput)

    def laid_out(self) -> None:
        self.changed()

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.height >= TALL, "tall")
        self.call_after_refresh(self.changed)

    def changed(self) -> None:
        """Rows or facts are others: keep the cursor on its row, paint what differs."""
        if not self.display or not self.size.width:
            return
        self._show_card()
        line = self.table.index_of(self._at) if self._at >= 0 else -1
        if line >= 0:
            self._list.move_to(line)
        self._list.sync()
        head = [[(" ", ""), *line] for line in self.head(self.size.width - 2)]
        self.query_one(f"#{self.SCOPE}-head", LinesView).set_lines(head)
        names: Line = [("  ", "head"), *self.heading(self._list.size.width - GUTTER)]
        self.query_one(f"#{self.SCOPE}-heading", OneLine).set_line(names)
        problem = self.table.filter_problem.removeprefix("filter: ")
        self._input.set_tail([(problem, "bad")] if problem else self.filter_tail())
        self._detail_soon.touch()

    def _show_card(self) -> None:
        """A job that failed before it had a row says why, and how to mend it, in the place of its rows."""
        card = None if self.table.total else self.table.facts.card
        cells = max(20, self._list.size.width - GUTTER)
        told = None if card is None else card_lines(card, cells, self.state.glyphs)
        if told != self._told:
            self._told = told
            self._list.set_model(self._rows if told is None else FixedRows(told))

    def _detail_now(self) -> None:
        if not self.is_mounted:
            return
        pane = self.query_one(f"#{self.SCOPE}-detail", LinesView)
        if pane.size.height and pane.size.width:
            pane.set_lines(self.detail(self.table.place(self._list.cursor), max(20, self.size.width - 2)))

    @on(VirtualList.Highlighted)
    def _cursor_moved(self) -> None:
        """The cursor is on another row."""
        self._at = self.table.place(self._list.cursor)
        self._detail_soon.touch()

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
        self.table.set_filter(text)
        if not self.table.filter_problem:
            self.session.remember(self.SCOPE, filter=text)
        if self.table.index_of(self._at) < 0:
            self.to_top()
        self.changed()

    @on(LineInput.Submitted)
    def _filter_done(self) -> None:
        self._filter_soon.flush()
        self._list.focus()

    @on(LineInput.Cancelled)
    def _filter_left(self) -> None:
        self.clear_filter()
        self._list.focus()

    def clear_filter(self) -> None:
        """Show all rows again."""
        if self.table.filter_text or self.table.filter_problem:
            self.filter_line("")

    def sort_by(self, name: str = "") -> None:
        """Sort by a column that is named."""
        if name not in self.SORTS:
            self.state.say(f"columns to sort by: {', '.join(self.SORTS)}", "bad")
            return
        self.table.sort_by(name)
        self.reordered()

    def columns(self, prefix: str) -> list[str]:
        """Completions of a column's name."""
        return [name for name in self.SORTS if name.startswith(prefix)]

    def reverse(self) -> None:
        """Turn the order round."""
        self.table.reverse_sort()
        self.reordered()

    def reordered(self) -> None:
        """The list starts again at its top: what is worst stands there."""
        self.to_top()
        self.changed()

    def to_top(self) -> None:
        """Put the cursor on the first row."""
        self._list.move_to(0)
        self._at = self.table.place(0)
