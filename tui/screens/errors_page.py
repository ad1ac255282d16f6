"""The Errors screen: the layer error table of a comparison, live, and what starts from one of its rows."""

from textual import on
from textual.app import ComposeResult

from layerwise._tool.backends.filesystem.places import absolute_path, user_path
from layerwise._tool.backends.text import counted
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.surgery.origin.origin import SourceLine
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.error_rows import TensorController, export_rows, yank_targets
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.effects import lens_text
from layerwise._tool.tui.presenters.error_detail import brief_lines, detail_lines, help_lines
from layerwise._tool.tui.presenters.errors_page import HEADINGS, head_lines, heading, row_line, table_columns
from layerwise._tool.tui.presenters.module_rows import tree_heading, tree_row
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.presenters.verdicts import word_of
from layerwise._tool.tui.screens.aligning import Pairing
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.job_table import JobTable
from layerwise._tool.tui.screens.left_out import LeftOutList
from layerwise._tool.tui.screens.minimap import Minimap
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.row_searches import ErrorSearches
from layerwise._tool.tui.screens.source import TITLE, offer
from layerwise._tool.tui.screens.tensor_panel import TensorPanel
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.virtual_list import VirtualList


class ErrorRows(JobTable, scope="errors"):
    """The layer error table."""

    FILTERS = "words, or err>1e-3 and op==MatMul and failed"
    TITLES = HEADINGS

    def __init__(self, state: AppState) -> None:
        super().__init__(state, state.errors, Minimap(state.errors, state.glyphs))
        self._errors = state.errors
        self._opened, self._untouched, self._came_to = "", True, 0

    def row_line(self, i: int, cells: int) -> Line:
        if self._errors.tree is not None:
            return tree_row(self._errors, i, cells, self.names, self._glyphs)
        shape = table_columns(self._errors.table, cells, self._errors.sort)
        return row_line(self._errors.table, self._errors.place(i), shape, self.names, self._glyphs)

    def changed(self) -> None:
        """As all tables; and a comparison just come to is shown from where the graph first goes wrong."""
        errors = self._errors
        if errors.job != self._opened:
            self._opened, self._untouched, self._at = errors.job, True, -1
            self.list.move_to(0)
        elif self.list.cursor != self._came_to:
            self._untouched = False
        if self._untouched and errors.tree is None and errors.sort == "graph":
            self._at = errors.first_bad()
        super().changed()
        if self._untouched:
            self._came_to = self.list.cursor
            line = errors.index_of(errors.first_bad())
            self._untouched = line < 0 or line == self._came_to  # else rows are in another order

    def came_back(self) -> None:
        self._untouched = False

    def _cursor_moved(self) -> None:
        self._untouched = self._untouched and self.list.cursor == self._came_to
        super()._cursor_moved()

    def head(self, cells: int) -> list[Line]:
        return head_lines(self._errors, cells, self._glyphs)

    def heading(self, cells: int) -> Line:
        errors = self._errors
        if errors.tree is not None:
            return tree_heading(errors, cells)
        shape = table_columns(errors.table, cells, errors.sort)
        return heading(shape, cells, errors.sort, errors.reverse, self._glyphs)

    @property
    def on_module(self) -> bool:
        """Whether the cursor is on a module's row."""
        return self._errors.head(self.list.cursor) is not None

    def on_mount(self) -> None:
        self._errors.fold_again(self._state.session.forms.get("errors"))
        super().on_mount()

    # ── modules ──

    def toggle_modules(self) -> None:
        """Show rows below their modules, or all in one list."""
        errors, place = self._errors, self.place
        errors.fold_modules(not errors.per_module)
        self._state.session.remember("errors", form=errors.kept_folds())
        if errors.per_module and errors.tree is None:
            self._state.say("no row has a module: the exporter noted none, or only outputs were compared", "warn")
        self.come_to(place if place >= 0 else self._errors.place(0))
        self.changed()

    def turn_fold(self) -> None:
        """Open or fold the module under the cursor, or fold the one that its row is in."""
        line = self._errors.turn(self.list.cursor)
        self._at = self._errors.anchor(line)
        self._state.session.remember("errors", form=self._errors.kept_folds())
        self.changed()

    def detail(self, place: int, cells: int) -> list[Line]:
        row = self._errors.table.row(place)
        word = word_of(self._errors.table, place)
        lines = detail_lines(row, self._errors.facts.runners, cells, word, self._evidence(row), self._lens(row))
        return [[(" ", ""), *line] for line in lines]

    def brief(self, place: int, cells: int) -> list[Line]:
        row = self._errors.table.row(place)
        table, shown = self._errors.table, range(self.list.top, self.list.top + self.list.rows_shown)
        others = [table.tensors[at] for at in map(self._errors.first, shown) if at >= 0]
        return brief_lines(row, cells, word_of(table, place), self._glyphs, others)

    def _lens(self, row: LayerRow) -> str:
        found = self._errors.effects.of(row.tensor)
        return "" if found is None else lens_text(*found, self._errors.effects.form)

    def _evidence(self, row: LayerRow) -> str:
        return self._errors.evidence.get(row.tensor, "")


class ErrorsScreen(Page, scope="errors"):
    """Table, minimap beside it, detail of the row below where there is room; enter opens a tensor's values."""

    DEFAULT_CSS = """
    ErrorsScreen #errors-table { width: 1fr; }
    ErrorsScreen #errors-detail { height: 2; }
    ErrorsScreen .tall #errors-detail { height: 11; }
    ErrorsScreen .wide #errors-detail { display: none; }
    ErrorsScreen .beside { display: none; }
    ErrorsScreen .wide .beside { display: block; }
    ErrorsScreen #errors-beside { width: 64; height: 1fr; }
    ErrorsScreen #tensor { display: none; }
    ErrorsScreen.on-tensor #tensor { display: block; }
    ErrorsScreen.on-tensor JobTable { height: auto; }
    ErrorsScreen.on-tensor #errors-body, ErrorsScreen.on-tensor #errors-detail { display: none; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self.errors = state.errors
        self.table = ErrorRows(state)
        self.main_list = self.table.list
        self._tensor = TensorPanel(state, TensorController(state))
        self.groups = (ErrorSearches(self, self.table), self.table, Pairing(self), LeftOutList(self))

    def compose(self) -> ComposeResult:
        yield self.table
        yield self._tensor

    def main_widget(self) -> VirtualList | TensorPanel:
        return self._tensor if self.has_class("on-tensor") else self.table.list

    def paint(self) -> None:
        self.table.changed()

    @command("errors.clear", "leave the tensor view, or show all rows again", keys="escape", means="back")
    def clear_filter(self) -> None:
        if self.has_class("on-tensor"):
            self._leave_tensor()
        else:
            self.table.clear_filter()

    @on(LineInput.Cancelled)
    def _filter_left(self) -> None:
        self.table.leave_filter()

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
            self.table.filter_line("")
        self._jump(self.errors.show(place) if place >= 0 else -1, otherwise)

    def _jump(self, line: int, otherwise: str) -> None:
        if line < 0:
            self.state.say(otherwise)
        else:
            self.table.come_to(self.errors.place(line))
            self.table.changed()
            self.table.list.move_to(line)

    # ── modules ──

    @command("errors.modules", "rows below their modules, with the errors of each (enter opens one), or all rows",
             keys="m", footer="modules", line="modules")  # fmt: skip
    def toggle_modules(self) -> None:
        self.table.toggle_modules()

    @command("errors.fold_block", "fold the module around the row", keys="Z")
    def turn_fold(self) -> None:
        self.table.turn_fold()

    @command("errors.source", TITLE, keys="O", line="source")
    def source(self) -> None:
        place = self.table.place
        row = self.errors.table.row(place) if place >= 0 else None
        offer(self, row.source if row is not None and isinstance(row.source, SourceLine) else None)

    # ── one tensor ──

    @on(VirtualList.Selected)
    @command("errors.tensor", "values of the tensor: statistics, histogram, worst elements", keys="enter",
             footer="tensor", line="tensor")  # fmt: skip
    def open_tensor(self) -> None:
        place = self.table.place
        if self.table.on_module:
            self.table.turn_fold()
        elif place >= 0:
            self.add_class("on-tensor")
            self._tensor.focus()
            self._tensor.show(place)

    def _leave_tensor(self) -> None:
        self.remove_class("on-tensor")
        self.table.list.focus()

    @command("errors.columns", "what the columns mean", keys="C", footer="columns")
    def explain_columns(self) -> None:
        choices = [Choice(line, None) for line in help_lines()]
        self.choose("What the columns mean (esc closes)", choices)

    # ── taking it elsewhere ──

    def in_hand(self) -> tuple[str, str]:
        place = self.table.place
        if place < 0:
            return super().in_hand()
        row = self.errors.table.row(place)
        return row.node or "", row.tensor

    @command("errors.yank", "copy the row, its tensor's name or the command line", keys="y", footer="yank")
    def yank(self) -> None:
        place = self.table.place
        self.offer_copies(yank_targets(self.errors, place))

    @command(
        "errors.export", "write the rows shown to a file: .csv .json .svg .txt", keys="W", means="write",
        line="export FILE",
    )  # fmt: skip
    def export(self, name: str = "") -> None:
        path = user_path(name or f"layers-{self.errors.job or 'none'}.txt")
        try:
            count = export_rows(self.errors, path)
            self.state.say(f"{counted(count, 'row')} written to {absolute_path(path)}", "good")
        except OSError as error:
            self.state.say(f"{path}: {error.strerror}", "bad")
