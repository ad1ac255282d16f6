"""The Errors screen: the layer error table of a comparison, live."""

from textual import on
from textual.app import ComposeResult

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import absolute_path, user_path
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.error_rows import TensorController, export_rows, yank_targets
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.error_detail import detail_lines, help_lines, tensor_lines
from layerwise._tool.tui.presenters.errors_page import head_lines, heading, row_line
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.error_searches import ErrorSearches
from layerwise._tool.tui.screens.job_table import JobTable, Minimap
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.pick import Choice
from layerwise._tool.tui.state.errors_page import SORTS
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.detail_pane import DetailPane
from layerwise._tool.tui.widgets.following import run_latest
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.virtual_list import VirtualList


class ErrorText:
    """The table as text."""

    def __init__(self, app: AppState) -> None:
        self._app, self._errors = app, app.errors

    def __len__(self) -> int:
        return len(self._errors.order)

    def row(self, i: int, cells: int) -> Line:
        return row_line(self._errors.table, self._errors.place(i), cells, self._app.glyphs)

    def head(self, cells: int) -> list[Line]:
        return head_lines(self._errors, cells, self._app.glyphs)

    def heading(self, cells: int) -> Line:
        errors = self._errors
        return heading(cells, errors.sort, errors.reverse, self._app.glyphs, errors.table.has_local)

    def filter_tail(self) -> Line:
        if not self._errors.filter_text:
            return [("words, or err>1e-3 and op==MatMul and failed", "dim")]
        count = f"{len(self._errors.order):,} of {len(self._errors.table):,}"
        return [(count if len(self._errors.order) else f"{count}: no row fits, esc shows all", "dim")]

    def detail(self, place: int, cells: int) -> list[Line]:
        if place < 0:
            return []
        row = self._errors.table.row(place)
        told = self._errors.evidence.get(row.tensor, "")
        return [[(" ", ""), *line] for line in detail_lines(row, self._errors.facts.runners, cells, told)]


class TensorPanel(DetailPane):
    """Shows a row's statistics at once, the rest when the job that reads the tensor is done."""

    def __init__(self, state: AppState, control: TensorController) -> None:
        super().__init__(id="tensor")
        self._state = state
        self._control = control

    def show(self, place: int) -> None:
        """Show the tensor of a row of the table."""
        row = self._state.errors.table.row(place)
        names = self._state.errors.facts.runners
        lines = detail_lines(row, names, max(40, self.app.size.width - 2))
        self._put([*lines, [], [("reading the values on both sides …", "dim")]])
        run_latest(self, "tensor", lambda: self._read(place, lines))

    async def _read(self, place: int, lines: list[Line]) -> None:
        try:
            data = await self._control.values(place)
        except LayerwiseError as error:
            self._put([*lines, [], [(f"the values could not be read: {error}", "bad")]])
            return
        names = self._state.errors.facts.runners
        cells = max(40, self.size.width - 2)
        self._put([*lines, [], *tensor_lines(data, names, cells, self._state.glyphs)])

    def _put(self, lines: list[Line]) -> None:
        hint: Line = [("esc ", "key"), ("back to the table   ", "dim"), ("j k ", "key"), ("scroll", "dim")]
        self.set_lines([[(" ", ""), *line] for line in [hint, *lines]])


class ErrorsScreen(Page, scope="errors"):
    """Table, minimap beside it, detail of the row below where there is room; enter opens a tensor's values."""

    DEFAULT_CSS = """
    ErrorsScreen #errors-head { height: 2; }
    ErrorsScreen .told #errors-head { height: 3; }
    ErrorsScreen #errors-table { width: 1fr; }
    ErrorsScreen #errors-detail { height: 15; display: none; }
    ErrorsScreen .tall #errors-detail { display: block; }
    ErrorsScreen #tensor { display: none; }
    ErrorsScreen.on-tensor #tensor { display: block; }
    ErrorsScreen.on-tensor JobTable { height: auto; }
    ErrorsScreen.on-tensor #errors-body, ErrorsScreen.on-tensor #errors-detail { display: none; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self.errors = state.errors
        map = Minimap(state.errors, state.glyphs)
        self.table = JobTable("errors", state, state.errors, ErrorText(state), SORTS, map)
        self._tensor = TensorPanel(state, TensorController(state))
        self.groups = (ErrorSearches(self, self.table),)

    def compose(self) -> ComposeResult:
        yield self.table
        yield self._tensor

    def main_widget(self) -> VirtualList | TensorPanel:
        return self._tensor if self.has_class("on-tensor") else self.table.list

    def paint(self) -> None:
        self.table.changed()

    # ── filter and sort ──

    @command("errors.filter", "filter: words, or err>1e-3 and op==MatMul and failed", keys="slash", footer="filter")
    def focus_filter(self) -> None:
        self.table.focus_filter()

    @command("errors.filter_line", "filter by an expression", line="filter EXPRESSION")
    def filter_line(self, text: str = "") -> None:
        self.table.filter_line(text)

    @command("errors.clear", "leave the tensor view, or show all rows again", keys="escape")
    def clear_filter(self) -> None:
        if self.has_class("on-tensor"):
            self._leave_tensor()
        else:
            self.table.clear_filter()

    @on(LineInput.Cancelled)
    def _filter_left(self) -> None:
        self.clear_filter()
        self.table.list.focus()

    @command("errors.sort", "sort by the next column", keys="s", footer="sort")
    def sort(self) -> None:
        self.errors.cycle_sort()
        self.table.reordered()

    @command("errors.sort_by", "sort by a column", line="sort COLUMN", complete="columns")
    def sort_by(self, name: str = "") -> None:
        self.table.sort_by({"accum": "rel_l2"}.get(name, name))

    def columns(self, prefix: str) -> list[str]:
        return self.table.columns(prefix)

    @command("errors.reverse", "reverse the order", keys="S")
    def reverse(self) -> None:
        self.table.reverse()

    # ── jumps ──

    @command("errors.first_bad", "first layer that goes wrong", keys="f", footer="first bad", line="first")
    def first_bad(self) -> None:
        self._jump_to_place(self.errors.first_bad(), "no layer has failed")

    @command("errors.next_leap", "next leap, overflow or NaN", keys="right_square_bracket e", footer="next leap")
    def next_leap(self) -> None:
        self._jump(self.errors.next_leap(self.table.list.cursor, 1), "no leap after this row")

    @command("errors.last_leap", "leap before this one", keys="left_square_bracket e")
    def last_leap(self) -> None:
        self._jump(self.errors.next_leap(self.table.list.cursor, -1), "no leap before this row")

    def _jump_to_place(self, place: int, otherwise: str) -> None:
        if place >= 0 and self.errors.index_of(place) < 0:
            self.filter_line("")
        self._jump(self.errors.index_of(place) if place >= 0 else -1, otherwise)

    def _jump(self, line: int, otherwise: str) -> None:
        if line < 0:
            self.state.say(otherwise)
        else:
            self.table.list.move_to(line)

    # ── one tensor ──

    @on(VirtualList.Selected)
    @command("errors.tensor", "values of the tensor: statistics, histogram, worst elements", keys="enter",
             footer="tensor", line="tensor")  # fmt: skip
    def open_tensor(self) -> None:
        place = self.table.place
        if place >= 0:
            self.add_class("on-tensor")
            self._tensor.focus()
            self._tensor.show(place)

    def _leave_tensor(self) -> None:
        self.remove_class("on-tensor")
        self.table.list.focus()

    @command("errors.columns", "what the columns mean", keys="c", footer="columns")
    def explain_columns(self) -> None:
        choices = [Choice(line, None) for line in help_lines()]
        self.choose("What the columns mean (esc closes)", choices)

    # ── taking it elsewhere ──

    @command("errors.yank", "copy the row, its tensor's name or the command line", keys="y", footer="yank")
    def yank(self) -> None:
        place = self.table.place
        self.offer_copies(yank_targets(self.errors, place))

    @command("errors.export", "write the rows shown to a file (.json or text)", keys="w", line="export FILE")
    def export(self, name: str = "") -> None:
        path = user_path(name or f"layers-{self.errors.job or 'none'}.txt")
        try:
            count = export_rows(self.errors, path)
            self.state.say(f"{count:,} rows written to {absolute_path(path)}", "good")
        except OSError as error:
            self.state.say(f"{path}: {error.strerror}", "bad")
