"""The Errors screen: the layer error table of a comparison, live."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical

from layerwise._tool.backends.filesystem.files import absolute_path, user_path
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.error_export import export_rows, yank_targets
from layerwise._tool.tui.controllers.tensor import TensorController
from layerwise._tool.tui.presenters.error_detail import detail_lines, help_lines
from layerwise._tool.tui.presenters.errors import head_lines, heading, row_line
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.error_searches import ErrorSearches
from layerwise._tool.tui.screens.job_table import JobTable
from layerwise._tool.tui.screens.pick import Choice, PickScreen
from layerwise._tool.tui.screens.tensor_panel import TensorPanel
from layerwise._tool.tui.state.errors import SORTS
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import LinesView, OneLine
from layerwise._tool.tui.widgets.minimap import Minimap
from layerwise._tool.tui.widgets.virtual_list import VirtualList


class ErrorRows:
    """Rows of the list, styled."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    def __len__(self) -> int:
        return len(self._app.errors.order)

    def row(self, i: int, cells: int) -> Line:
        errors = self._app.errors
        return row_line(errors.table, errors.place(i), cells, self._app.glyphs)


class ErrorsScreen(JobTable, ErrorSearches, scope="errors"):
    """Table, minimap beside it, detail of the row below where there is room; enter opens a tensor's values."""

    DEFAULT_CSS = """
    ErrorsScreen #errors-head { height: 2; }
    ErrorsScreen.told #errors-head { height: 3; }
    ErrorsScreen #errors-table { width: 1fr; }
    ErrorsScreen #errors-detail { height: 15; display: none; }
    ErrorsScreen.tall #errors-detail { display: block; }
    ErrorsScreen #tensor { display: none; }
    ErrorsScreen.on-tensor #tensor { display: block; }
    ErrorsScreen.on-tensor #errors-body, ErrorsScreen.on-tensor #errors-detail { display: none; }
    """

    SORTS = SORTS

    def __init__(self, state: AppState) -> None:
        super().__init__(state, state.errors)
        self._map = Minimap(state.errors, state.glyphs)
        self._tensor = TensorPanel(state, TensorController(state))

    def rows_model(self) -> ErrorRows:
        return ErrorRows(self.state)

    def compose(self) -> ComposeResult:
        yield LinesView(id="errors-head")
        yield LineInput("/ ", id="errors-filter")
        with Horizontal(id="errors-body"):
            with Vertical(id="errors-table"):
                yield OneLine(id="errors-heading")
                yield self._list
            yield self._map
        yield LinesView(id="errors-detail")
        yield self._tensor

    def main_widget(self) -> VirtualList | TensorPanel:
        return self._tensor if self.has_class("on-tensor") else self._list

    def place_in_view(self) -> int:
        return self.errors.place(self._list.cursor)

    # ── drawing ──

    def changed(self) -> None:
        super().changed()
        self._show_map()

    def head(self, cells: int) -> list[Line]:
        lines = head_lines(self.errors, cells, self.state.glyphs)
        self.set_class(len(lines) > 2, "told")
        return lines

    def heading(self, cells: int) -> Line:
        errors = self.errors
        return heading(cells, errors.sort, errors.reverse, self.state.glyphs, errors.table.has_local)

    def filter_tail(self) -> Line:
        if not self.errors.filter_text:
            return [("words, or err>1e-3 and op==MatMul and failed", "dim")]
        count = f"{len(self.errors.order):,} of {len(self.errors.table):,}"
        return [(count if len(self.errors.order) else f"{count}: no row fits, esc shows all", "dim")]

    def detail(self, place: int, cells: int) -> list[Line]:
        if place < 0:
            return []
        row = self.errors.table.row(place)
        told = self.errors.evidence.get(row.tensor, "")
        return [[(" ", ""), *line] for line in detail_lines(row, self.errors.facts.runners, cells, told)]

    @on(VirtualList.Highlighted)
    def _show_map(self) -> None:
        self._map.update_map(self._list.top, self._list.size.height)

    # ── filter and sort ──

    @command("errors.filter", "filter: words, or err>1e-3 and op==MatMul and failed", keys="slash", footer="filter")
    def focus_filter(self) -> None:
        super().focus_filter()

    @command("errors.filter_line", "filter by an expression", line="filter EXPRESSION")
    def filter_line(self, text: str = "") -> None:
        super().filter_line(text)

    @command("errors.clear", "leave the tensor view, or show all rows again", keys="escape")
    def clear_filter(self) -> None:
        if self.has_class("on-tensor"):
            self._leave_tensor()
        else:
            super().clear_filter()

    @command("errors.sort", "sort by the next column", keys="s", footer="sort")
    def sort(self) -> None:
        self.errors.cycle_sort()
        self.reordered()

    @command("errors.sort_by", "sort by a column", line="sort COLUMN", complete="columns")
    def sort_by(self, name: str = "") -> None:
        super().sort_by({"accum": "rel_l2"}.get(name, name))

    @command("errors.reverse", "reverse the order", keys="S")
    def reverse(self) -> None:
        super().reverse()

    # ── jumps ──

    @command("errors.first_bad", "first layer that goes wrong", keys="f", footer="first bad", line="first")
    def first_bad(self) -> None:
        self._jump_to_place(self.errors.first_bad(), "no layer has failed")

    @command("errors.next_leap", "next leap, overflow or NaN", keys="right_square_bracket e", footer="next leap")
    def next_leap(self) -> None:
        self._jump(self.errors.next_leap(self._list.cursor, 1), "no leap after this row")

    @command("errors.last_leap", "leap before this one", keys="left_square_bracket e")
    def last_leap(self) -> None:
        self._jump(self.errors.next_leap(self._list.cursor, -1), "no leap before this row")

    def _jump_to_place(self, place: int, otherwise: str) -> None:
        if place >= 0 and self.errors.index_of(place) < 0:
            self.filter_line("")
        self._jump(self.errors.index_of(place) if place >= 0 else -1, otherwise)

    def _jump(self, line: int, otherwise: str) -> None:
        if line < 0:
            self.state.say(otherwise)
        else:
            self._list.move_to(line)

    # ── one tensor ──

    @on(VirtualList.Selected)
    @command("errors.tensor", "values of the tensor: statistics, histogram, worst elements", keys="enter",
             footer="tensor", line="tensor")  # fmt: skip
    def open_tensor(self) -> None:
        place = self.errors.place(self._list.cursor)
        if place >= 0:
            self.add_class("on-tensor")
            self._tensor.focus()
            self._tensor.show(place)

    def _leave_tensor(self) -> None:
        self.remove_class("on-tensor")
        self._list.focus()

    @command("errors.columns", "what the columns mean", keys="c", footer="columns")
    def explain_columns(self) -> None:
        choices = [Choice(line, None) for line in help_lines()]
        self.app.push_screen(PickScreen("What the columns mean (esc closes)", choices, self.state.glyphs))

    # ── taking it elsewhere ──

    @command("errors.yank", "copy the row, its tensor's name or the command line", keys="y", footer="yank")
    def yank(self) -> None:
        place = self.errors.place(self._list.cursor)
        self.offer_copies(yank_targets(self.errors, place))

    @command("errors.export", "write the rows shown to a file (.json or text)", keys="w", line="export FILE")
    def export(self, name: str = "") -> None:
        path = user_path(name or f"layers-{self.errors.job or 'none'}.txt")
        try:
            count = export_rows(self.errors, path)
            self.state.say(f"{count:,} rows written to {absolute_path(path)}", "good")
        except OSError as error:
            self.state.say(f"{path}: {error.strerror}", "bad")
