"""Two states of the model, or two models, side by side."""

from textual import on
from textual.app import ComposeResult

from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.changes import heading, pair_lines, side_row
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.changes import Gap, Pair, SideRows
from layerwise._tool.tui.state.coalesce import Coalesce
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.detail_pane import DetailPane
from layerwise._tool.tui.widgets.following import follow
from layerwise._tool.tui.widgets.lines import LinesView
from layerwise._tool.tui.widgets.virtual_list import VirtualList

DETAIL_WAIT = 0.06


class PairRows:
    """Rows of both sides, styled."""

    def __init__(self, app: AppState, rows: SideRows | None) -> None:
        self._app = app
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows.rows) if self.rows else 0

    def row(self, i: int, cells: int) -> Line:
        assert self.rows is not None
        return side_row(self.rows.sides, self.rows.rows[i], cells, self._app.glyphs)


class ChangesScreen(Page, scope="changes"):
    """What differs, with a little around it; the row under the cursor in words below."""

    DEFAULT_CSS = """
    ChangesScreen #changes-head { height: 2; }
    ChangesScreen #changes-detail { height: 5; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self._list = VirtualList(PairRows(state, None), glyphs=state.glyphs, id="changes-rows")
        self._detail_soon = Coalesce(self._show_detail, DETAIL_WAIT)

    def compose(self) -> ComposeResult:
        yield LinesView(id="changes-head")
        yield self._list
        yield DetailPane(id="changes-detail")

    def on_mount(self) -> None:
        follow(self, self.state.surgery.on_change, self._changed)
        self._changed()

    def main_widget(self) -> VirtualList:
        return self._list

    def shown_again(self) -> None:
        self._changed()

    @property
    def _rows(self) -> SideRows | None:
        return self._list.model.rows if isinstance(self._list.model, PairRows) else None

    def _changed(self) -> None:
        sides = self.state.surgery.compared
        if not self.is_mounted or sides is None or (self._rows is not None and self._rows.sides is sides):
            return
        rows = SideRows(sides)
        self._list.set_model(PairRows(self.state, rows), rows.next(-1, 1) or 0)
        self.paint()

    def paint(self) -> None:
        if self._rows is None:
            line: Line = [(" nothing is compared yet: D in Surgery or its history, or :diff FILE", "dim")]
            self.query_one("#changes-head", LinesView).set_lines([line])
            return
        lines = heading(self._rows.sides, self.size.width - 2, self.state.glyphs)
        self.query_one("#changes-head", LinesView).set_lines([lines[0], [("  ", "head"), *lines[1]]])
        self._detail_soon.touch()

    @on(VirtualList.Highlighted, "#changes-rows")
    def _moved(self) -> None:
        self._detail_soon.touch()

    def _row(self) -> Pair | Gap | None:
        rows = self._rows.rows if self._rows else []
        return rows[self._list.cursor] if self._list.cursor < len(rows) else None

    def _show_detail(self) -> None:
        row = self._row()
        if self.is_mounted and self._rows is not None and row is not None:
            pane = self.query_one("#changes-detail", DetailPane)
            lines = pair_lines(self._rows.sides, row, pane.size.width - 2, self.state.glyphs)
            pane.set_lines([[(" ", ""), *line] for line in lines])

    @on(VirtualList.Selected, "#changes-rows")
    def _opened(self) -> None:
        if self._rows is not None and self._rows.open(self._list.cursor):
            self._list.set_model(self._list.model, self._list.cursor)

    @command("changes.next", "next difference", keys="n", footer="next", line="next")
    def next_change(self) -> None:
        self._go(1)

    @command("changes.previous", "previous difference", keys="N", footer="previous", line="previous")
    def previous_change(self) -> None:
        self._go(-1)

    def _go(self, step: int) -> None:
        row = self._rows.next(self._list.cursor, step) if self._rows else None
        if row is None:
            self.state.say("no further difference that way")
        else:
            self._list.move_to(row)

    @command("changes.back", "back to the graph", keys="escape,D", footer="graph", line="graph-of-edits")
    def leave(self) -> None:
        self.open("surgery")

    @command("changes.pane", "scroll the text, or back to the list", keys="tab")
    def toggle_pane(self) -> None:
        pane = self.query_one("#changes-detail", DetailPane)
        (self._list if pane.has_focus else pane).focus()
