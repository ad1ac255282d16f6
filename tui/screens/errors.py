"""The Errors screen: the layer error table of a comparison, live."""

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize

from backends.files import user_path
from tui.commands import command
from tui.controllers.error_export import export_rows, yank_targets
from tui.controllers.tensor import TensorController
from tui.presenters.error_detail import detail_lines, help_lines
from tui.presenters.errors import head_lines, heading, row_line
from tui.presenters.text import Line
from tui.screens.error_searches import ErrorSearches
from tui.screens.pick import Choice, PickScreen, yank_choices
from tui.screens.tensor_panel import TensorPanel
from tui.state.coalesce import Coalesce
from tui.state.errors import SORTS
from tui.state.shared import AppState
from tui.widgets.line_input import LineInput
from tui.widgets.lines import LinesView, OneLine
from tui.widgets.minimap import Minimap
from tui.widgets.virtual_list import GUTTER, VirtualList

TALL = 32
FILTER_WAIT = 0.05
DETAIL_WAIT = 0.06


class ErrorRows:
    """Rows of the list, styled."""

    def __init__(self, app: AppState) -> None:
        self._app = app

    def __len__(self) -> int:
        return len(self._app.errors.order)

    def row(self, i: int, cells: int) -> Line:
        errors = self._app.errors
        return row_line(errors.table, errors.place(i), cells, self._app.glyphs)


class ErrorsScreen(ErrorSearches, scope="errors"):
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

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self._list = VirtualList(ErrorRows(state), glyphs=state.glyphs, id="layers")
        self._map = Minimap(state.errors, state.glyphs)
        self._tensor = TensorPanel(state, TensorController(state))
        self._at = -1
        self._detail_soon = Coalesce(self._show_detail, DETAIL_WAIT)
        self._filter_soon = Coalesce(self._filter_now, FILTER_WAIT)

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

    def on_mount(self) -> None:
        self.errors.on_change.subscribe(self._changed)
        text = self.session.filters.get("errors", "")
        self.query_one("#errors-filter", LineInput).set_value(text)
        self.errors.set_filter(text)
        self._changed()

    def main_widget(self) -> VirtualList | TensorPanel:
        return self._tensor if self.has_class("on-tensor") else self._list

    def place_in_view(self) -> int:
        return self.errors.place(self._list.cursor)

    def shown_again(self) -> None:
        self._changed()

    def on_resize(self, event: Resize) -> None:
        self.set_class(self.app.size.height >= TALL, "tall")
        self.call_after_refresh(self._changed)

    # ── drawing ──

    def _changed(self) -> None:
        """Rows or facts are others: keep the cursor on its row, paint what differs."""
        if not self.display or not self.size.width:
            return
        line = self.errors.index_of(self._at) if self._at >= 0 else -1
        if line >= 0:
            self._list.move_to(line)
        self._list.sync()
        self._show_frame()
        self._detail_soon.touch()

    def _show_frame(self) -> None:
        glyphs, errors = self.state.glyphs, self.errors
        head = [[(" ", ""), *line] for line in head_lines(errors, self.size.width - 1, glyphs)]
        self.set_class(len(head) > 2, "told")
        self.query_one("#errors-head", LinesView).set_lines(head)
        cells = self._list.size.width - GUTTER
        names: Line = [("  ", "head"), *heading(cells, errors.sort, errors.reverse, glyphs, errors.table.has_local)]
        self.query_one("#errors-heading", OneLine).set_line(names)
        self.query_one("#errors-filter", LineInput).set_tail(self._filter_tail())
        self._show_map()

    def _filter_tail(self) -> Line:
        if self.errors.filter_problem:
            return [(self.errors.filter_problem.removeprefix("filter: "), "bad")]
        if not self.errors.filter_text:
            return [("words, or err>1e-3 and op==MatMul and failed", "dim")]
        count = f"{len(self.errors.order):,} of {len(self.errors.table):,}"
        return [(count if len(self.errors.order) else f"{count}: no row fits, esc shows all", "dim")]

    def _show_map(self) -> None:
        self._map.update_map(self._list.top, self._list.size.height)

    def _show_detail(self) -> None:
        pane = self.query_one("#errors-detail", LinesView)
        place = self.errors.place(self._list.cursor)
        if not pane.size.height:
            return
        row = None if place < 0 else self.errors.table.row(place)
        cells = max(20, self.size.width - 2)
        told = self.errors.evidence.get(str(row.get("tensor")), "") if row is not None else ""
        lines = detail_lines(row, self.errors.facts.runners, cells, told) if row is not None else []
        pane.set_lines([[(" ", ""), *line] for line in lines])

    @on(VirtualList.Highlighted, "#layers")
    def _cursor_moved(self) -> None:
        self._at = self.errors.place(self._list.cursor)
        self._show_map()
        self._detail_soon.touch()

    # ── filter and sort ──

    @command("errors.filter", "filter: words, or err>1e-3 and op==MatMul and failed", keys="slash", footer="filter")
    def focus_filter(self) -> None:
        self.query_one("#errors-filter", LineInput).focus()

    @command("errors.filter_line", "filter by an expression", line="filter EXPRESSION")
    def filter_line(self, text: str = "") -> None:
        self.query_one("#errors-filter", LineInput).set_value(text)
        self._filter_now()

    @on(LineInput.Changed, "#errors-filter")
    def _filter_changed(self) -> None:
        self._filter_soon.touch()

    def _filter_now(self) -> None:
        text = self.query_one("#errors-filter", LineInput).value
        self.errors.set_filter(text)
        if not self.errors.filter_problem:
            self.session.remember("errors", filter=text)
        if self.errors.index_of(self._at) < 0:
            self._to_top()
        self._changed()

    @on(LineInput.Submitted, "#errors-filter")
    def _filter_done(self) -> None:
        self._filter_soon.flush()
        self._list.focus()

    @on(LineInput.Cancelled, "#errors-filter")
    def _filter_left(self) -> None:
        self.clear_filter()
        self._list.focus()

    @command("errors.clear", "leave the tensor view, or show all rows again", keys="escape")
    def clear_filter(self) -> None:
        if self.has_class("on-tensor"):
            self._leave_tensor()
        elif self.errors.filter_text or self.errors.filter_problem:
            self.filter_line("")

    @command("errors.sort", "sort by the next column", keys="s", footer="sort")
    def sort(self) -> None:
        self.errors.cycle_sort()
        self._reordered()

    @command("errors.sort_by", "sort by a column", line="sort COLUMN", complete="columns")
    def sort_by(self, name: str = "") -> None:
        name = {"accum": "rel_l2"}.get(name, name)
        if name in SORTS:
            self.errors.sort_by(name)
            self._reordered()
        else:
            self.state.say(f"columns to sort by: {', '.join(SORTS)}", "bad")

    def columns(self, prefix: str) -> list[str]:
        return [name for name in SORTS if name.startswith(prefix)]

    @command("errors.reverse", "reverse the order", keys="S")
    def reverse(self) -> None:
        self.errors.reverse_sort()
        self._reordered()

    def _reordered(self) -> None:
        """The list starts again at its top: what is worst stands there."""
        self._to_top()
        self._changed()

    def _to_top(self) -> None:
        self._list.move_to(0)
        self._at = self.errors.place(0)

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

    @on(VirtualList.Selected, "#layers")
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
        choices = yank_choices(yank_targets(self.errors, place))
        if choices:
            self.app.push_screen(PickScreen("Copy", choices, self.state.glyphs), self._yanked)

    def _yanked(self, text: object) -> None:
        if isinstance(text, str):
            self.post_message(self.Yank(text))

    @command("errors.export", "write the rows shown to a file (.json or text)", keys="w", line="export FILE")
    def export(self, name: str = "") -> None:
        path = user_path(name or f"layers-{self.errors.job or 'none'}.txt")
        try:
            count = export_rows(self.errors, path)
            self.state.say(f"{count:,} rows written to {path.absolute()}", "good")
        except OSError as error:
            self.state.say(f"{path}: {error.strerror}", "bad")
