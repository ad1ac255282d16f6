"""The rows of one job as a table, with a filter, a sort and a detail of one row: for the screens that follow a job."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container, Horizontal, Vertical
from textual.events import Resize

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import REGISTRY, Commands, command, declare
from layerwise._tool.tui.presenters.jobs import card_lines
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.minimap import Minimap
from layerwise._tool.tui.state.job_rows import JobRows
from layerwise._tool.tui.state.kept_place import KeptPlace
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import Soon, follow
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import LinesView, OneLine, Separator
from layerwise._tool.tui.widgets.virtual_list import GUTTER, FixedRows, LiveRows, VirtualList

TALL = 32
BESIDE = 160
"""Columns from which on the row under the cursor stands beside the list."""
FILTER_WAIT = 0.05
DETAIL_WAIT = 0.06
COLUMNS = {"accum": "rel_l2", "err": "max_abs", "share": "time", "so far": "time"}
"""Other words of the heading -> what they sort by."""


class JobTable(Commands, Container):
    """Head, filter, heading, list and detail: `#NAME-head`, `-filter`, `-heading`, `-list` and `-detail`; a minimap
    stands beside the list, and in wide terminals a detail `-beside` it in place of the one below.

    The cursor stays on its row, wherever rows that come, a filter or a sort move it. Subclass with the page's scope,
    the NAME; `row_line`, `head`, `heading` and `detail` give the text of the rows. map: None where there is none.
    """

    _page: ClassVar[str]
    FILTERS: ClassVar[str]
    """How a filter is written."""
    TITLES: ClassVar[Mapping[str, str]] = {}
    """The heading of a column by what it sorts by."""

    def __init_subclass__(cls, scope: str, **kwargs: Any) -> None:
        cls._page = scope
        declare(JobTable, scope, cls)
        REGISTRY[f"{scope}.filter"] = replace(REGISTRY[f"{scope}.filter"], title=f"filter: {cls.FILTERS}")
        super().__init_subclass__(scope=scope, **kwargs)

    def __init__(self, state: AppState, table: JobRows, map: Minimap | None = None) -> None:
        super().__init__()
        self._state, self._table, self._map, self._glyphs = state, table, map, state.glyphs
        self._rows = LiveRows(table.lines, self.row_line)
        self.names = Names(state.glyphs)
        self.list = VirtualList(self._rows, glyphs=state.glyphs, id=f"{self._page}-list", names=self.names)
        self.list.moved = self._note_row
        self._told: list[Line] | None = None
        self._at: object = -1
        self._kept = KeptPlace(state.session, self._page, table)
        self._before: tuple[str, object, str] = ("", -1, "")
        self._detail_soon = Soon(self, self._detail_now, DETAIL_WAIT, state.owed)
        self._filter_soon = Soon(self, self._filter_now, FILTER_WAIT, state.owed)

    def row_line(self, i: int, cells: int) -> Line:
        """The row at a line of the list."""
        raise NotImplementedError

    def head(self, cells: int) -> list[Line]:
        """What stands above the list."""
        raise NotImplementedError

    def heading(self, cells: int) -> Line:
        """The names of the columns."""
        raise NotImplementedError

    def detail(self, place: int, cells: int) -> list[Line]:
        """A row in full."""
        raise NotImplementedError

    def brief(self, place: int, cells: int) -> list[Line]:
        """A row in the lines that a small terminal has for it."""
        return self.detail(place, cells)

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
                yield Separator(self._glyphs.separator, classes="beside")
                yield LinesView(id=f"{self._page}-beside", classes="beside")
        yield LinesView(id=f"{self._page}-detail")

    # ── drawing ──

    def on_mount(self) -> None:
        follow(self, self._table.on_change, self.changed)
        text = self._state.session.filters.get(self._page, "")
        self._input.set_value(text)
        self._table.set_filter(text)
        self._kept.restore()
        self.changed()

    @property
    def _input(self) -> LineInput:
        return self.query_one(f"#{self._page}-filter", LineInput)

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.height >= TALL, "tall")
        self.set_class(self._map is not None and self.app.size.width >= BESIDE, "wide")

    def on_lines_view_resized(self) -> None:
        self.changed()

    def changed(self) -> None:
        """Rows or facts are others: keep the cursor on its row, paint what differs."""
        if not self.size.width:
            return
        self._show_card()
        kept = self._kept.come_back()
        if kept is not None:
            self._at = kept
            self.came_back()
        line = self._table.line_of(self._at)
        if line >= 0:
            self.list.move_to(line)
        self.list.sync()
        head = [[(" ", ""), *line] for line in self.head(self.size.width - 2)]
        view = self.query_one(f"#{self._page}-head", LinesView)
        view.styles.height = len(head)
        view.set_lines(head)
        names: Line = [("  ", "head"), *self.heading(self.list.size.width - GUTTER)]
        self.query_one(f"#{self._page}-heading", OneLine).set_line(names)
        problem = self._table.filter_problem.removeprefix("filter: ")
        self._input.set_tail([(problem, "bad")] if problem else self._filter_tail())
        self._detail_soon.touch()
        self._show_map()

    def came_back(self) -> None:
        """The cursor comes to the row where it was left."""

    def _filter_tail(self) -> Line:
        if not self._table.filter_text or not self._table.total:
            return [(self.FILTERS, "dim")]
        count = f"{len(self._table.order):,} of {self._table.total:,}"
        return [(count if len(self._table.order) else f"{count}: no row fits, esc shows all", "dim")]

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
            self.list.set_model(self._rows if told is None else FixedRows(told))

    def _detail_now(self) -> None:
        if not self.is_mounted:
            return
        where = "beside" if self.has_class("wide") else "detail"
        pane = self.query_one(f"#{self._page}-{where}", LinesView)
        if pane.size.height and pane.size.width:
            cells = max(20, pane.size.width - 2)
            make = self.detail if where == "beside" or self.has_class("tall") else self.brief
            pane.set_lines(make(self.place, cells) if self.place >= 0 else [])

    @on(VirtualList.Highlighted)
    def _list_moved(self) -> None:
        self._cursor_moved()

    def _cursor_moved(self) -> None:
        """The cursor is on another row."""
        self._kept.keep(self.list.cursor)
        self._detail_soon.touch()
        self._show_map()

    def _note_row(self, told: bool) -> None:
        """The cursor goes where this row goes."""
        self._at = self._table.anchor(self.list.cursor)

    @property
    def place(self) -> int:
        """The table's row under the cursor, -1 if there is none."""
        return self._table.place(self.list.cursor)

    def come_to(self, place: int) -> None:
        """Put the cursor on a row of the table when it is painted next."""
        self._at = place

    # ── filter and sort ──

    @command(".filter", "filter the rows", keys="slash", footer="filter")
    def focus_filter(self) -> None:
        """Write on the filter."""
        self._before = (self._input.value, self._at, self._table.filter_text)
        self._input.focus()

    def leave_filter(self) -> None:
        """All is as it was before the filter was written on."""
        text, at, _ = self._before
        self._filter_soon.cancel()
        self.list.focus()
        if text != self._table.filter_text or text != self._input.value:
            self._input.set_value(text)
            self._at = at
            self._filter_now()

    @command(".filter_line", "filter by an expression", line="filter EXPRESSION")
    def filter_line(self, text: str = "") -> None:
        """Filter by an expression."""
        self._input.set_value(text)
        self._filter_now()

    @on(LineInput.Changed)
    def _filter_changed(self) -> None:
        self._filter_soon.touch()

    def _filter_now(self) -> None:
        otherwise = None
        if self._input.has_focus:  # what is typed on the way moves no cursor, and leaves no filter behind
            _, self._at, otherwise = self._before
        self._table.set_filter(self._input.value, otherwise)
        self._state.session.remember(self._page, filter=self._table.filter_text)
        if self._table.line_of(self._at) < 0:
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

    @command(".sort", "sort by the next column", keys="s", footer="sort")
    def sort(self) -> None:
        """Sort by the next column that is shown."""
        self._table.cycle_sort()
        self.reordered()

    @command(".sort_by", "sort by a column", line="sort COLUMN", complete="columns")
    def sort_by(self, name: str = "") -> None:
        """Sort by a column that is named."""
        column = self._sort_of(name)
        if column is None:
            wrong = f"no column {shown(name, 40)}; " if name else ""
            self._state.say(f"{wrong}columns to sort by: {', '.join(self.columns(''))}", "bad")
            return
        self._table.sort_by(column)
        self.reordered()

    def _sort_of(self, name: str) -> str | None:
        """What a column sorts by, named as the heading names it or as the settings do; None for no column."""
        named = {title.lower(): sort for sort, title in self.TITLES.items()}
        named |= {word: sort for word, sort in COLUMNS.items() if sort in self._table.SORTS}
        named |= {sort: sort for sort in self._table.SORTS}
        return named.get(name.strip().lower())

    def columns(self, prefix: str) -> list[str]:
        """Completions of a column's name."""
        names = [self.TITLES.get(sort, sort) for sort in self._table.SORTS]
        return [name for name in names if name.lower().startswith(prefix.lower())]

    @command(".reverse", "reverse the order", keys="S")
    def reverse(self) -> None:
        """Turn the order round."""
        self._table.reverse_sort()
        self.reordered()

    def reordered(self) -> None:
        """The list starts again at its top: what is worst stands there."""
        self.to_top()
        self.changed()
        self._kept.keep(self.list.cursor)

    def to_top(self) -> None:
        """Put the cursor on the first row."""
        self.list.move_to(0)
        self._at = self._table.anchor(0)
