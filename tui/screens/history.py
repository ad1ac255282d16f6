"""The history of edits, a tree to walk and branch; two states of the model, or two models, side by side."""

from collections.abc import Awaitable

from textual import on
from textual.app import ComposeResult

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.preview import step_lines
from layerwise._tool.tui.presenters.surgery import Branch, branch_row, branches, heading, pair_lines, side_row
from layerwise._tool.tui.presenters.text import Line, wrap_runs
from layerwise._tool.tui.screens.page import Page, turns_pane
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.state.surgery import Gap, NodesBeside, SideRows
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.following import Soon, follow, run_latest, run_work
from layerwise._tool.tui.widgets.lines import DetailPane, LinesView, OneLine
from layerwise._tool.tui.widgets.virtual_list import LiveRows, VirtualList

DETAIL_WAIT = 0.06


class HistoryScreen(Page, scope="history"):
    """The tree above, what the edit under the cursor changed below."""

    DEFAULT_CSS = """
    HistoryScreen #history-detail { height: 40%; min-height: 4; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self._surgeon = controllers.surgery
        self._branches: list[Branch] = []
        self._names = Names(state.glyphs)
        self.main_list = VirtualList(
            LiveRows(lambda: len(self._branches), self._line),
            glyphs=state.glyphs, id="history-rows", names=self._names,
        )  # fmt: skip
        self._detail_soon = Soon(self, self._ask_detail, DETAIL_WAIT, state.owed)

    def compose(self) -> ComposeResult:
        yield OneLine(id="history-head")
        yield self.main_list
        yield DetailPane(id="history-detail")

    def _line(self, i: int, cells: int) -> Line:
        return branch_row(self._branches[i], self.state.surgery, cells, self._names, self.state.glyphs)

    def on_mount(self) -> None:
        follow(self, self.state.surgery.on_change, self.paint)
        run_work(self, "surgery-open", self._surgeon.open, Waits.OPENING)
        self.paint()

    def shown_again(self) -> None:
        self.paint()
        here = [at for at, branch in enumerate(self._branches) if branch.step.id == self.state.surgery.head]
        self.main_list.move_to(next(iter(here), 0))

    def paint(self) -> None:
        if not self.is_mounted:
            return
        self._branches = branches(self.state.surgery)
        count = max(0, len(self._branches) - 1)
        told = f"{count:,} edit{'s' * (count != 1)}; enter goes to a state, and an edit made there starts a branch"
        self.query_one("#history-head", OneLine).set_line([(f" {told}", "dim")])
        self.main_list.sync()
        self._detail_soon.touch()

    @on(VirtualList.Highlighted, "#history-rows")
    def _moved(self) -> None:
        self._detail_soon.touch()

    def _at(self) -> int:
        found = self._branches
        return found[self.main_list.cursor].step.id if self.main_list.cursor < len(found) else 0

    def _ask_detail(self) -> None:
        if self.is_mounted and self.display and self.state.surgery.opened:
            at = self._at()
            run_latest(self, "history-detail", lambda: self._show_detail(at))

    async def _show_detail(self, number: int) -> None:
        pane, step = self.query_one("#history-detail", DetailPane), self.state.surgery.step(number)
        cells = pane.size.width - 1
        if step is None or cells < 1:
            return
        if not number:
            pane.set_lines([[(" the model as it is on disk; nothing is changed there until it is written", "dim")]])
            return
        try:
            preview = await self._surgeon.between(step.parent, number)
            lines = step_lines(preview, cells, self.state.glyphs)
        except LayerwiseError as error:
            lines = wrap_runs([(f" {error}", "bad")], cells, 1)
        pane.set_lines([*wrap_runs([(f" {step.text}", "strong")], cells, 1), *lines])

    @on(VirtualList.Selected, "#history-rows")
    @command("history.go", "go to this state", keys="enter", footer="go there", line="state")
    async def go(self) -> None:
        await self._did(self._surgeon.go(self._at()), f"the model after edit {self._at()}" * bool(self._at()))

    @command("history.sides", "this state beside the current one (which stands beside the file)", keys="D",
             footer="side by side", line="sides")  # fmt: skip
    async def side_by_side(self) -> None:
        at, head = self._at(), self.state.surgery.head
        if await self._did(self._surgeon.compare(at if at != head else 0, head)):
            self.open("changes")

    @command("history.undo", "undo", keys="u", footer="undo", line="undo")
    async def undo(self) -> None:
        await self._did(self._surgeon.undo())

    @command("history.redo", "redo", keys="ctrl+r", footer="redo", line="redo")
    async def redo(self) -> None:
        await self._did(self._surgeon.redo())

    @command("history.back", "back to the graph", keys="escape", means="back", footer="graph", line="graph-of-edits")
    def leave(self) -> None:
        self.open("surgery")

    toggle_pane = turns_pane("history.pane", "scroll the text, or back to the list")

    async def _did(self, work: Awaitable[object], done: str = "") -> bool:
        well = False
        with self.state.telling():
            await work
            well = True
            if done:
                self.state.say(done)
        return well


class ChangesScreen(Page, scope="changes"):
    """What differs, with a little around it; the row under the cursor in words below."""

    DEFAULT_CSS = """
    ChangesScreen #changes-head { height: 2; }
    ChangesScreen #changes-detail { height: 5; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self._rows: SideRows | None = None
        rows = LiveRows(lambda: len(self._rows.rows) if self._rows else 0, self._line)
        self._names = Names(state.glyphs)
        self.main_list = VirtualList(rows, glyphs=state.glyphs, id="changes-rows", names=self._names)
        self._detail_soon = Soon(self, self._show_detail, DETAIL_WAIT, state.owed)

    def compose(self) -> ComposeResult:
        yield LinesView(id="changes-head")
        yield self.main_list
        yield DetailPane(id="changes-detail")

    def on_mount(self) -> None:
        follow(self, self.state.surgery.on_change, self._changed)
        self._changed()

    def shown_again(self) -> None:
        self._changed()

    def _line(self, i: int, cells: int) -> Line:
        assert self._rows is not None
        return side_row(self._rows.sides, self._rows.rows[i], cells, self._names, self.state.glyphs)

    def _changed(self) -> None:
        sides = self.state.surgery.compared
        if not self.is_mounted or sides is None or (self._rows is not None and self._rows.sides is sides):
            return
        self._rows = SideRows(sides)
        self.main_list.set_model(self.main_list.model, self._rows.next(-1, 1) or 0)
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

    def _row(self) -> NodesBeside | Gap | None:
        rows = self._rows.rows if self._rows else []
        return rows[self.main_list.cursor] if self.main_list.cursor < len(rows) else None

    def _show_detail(self) -> None:
        row = self._row()
        if self.is_mounted and self._rows is not None and row is not None:
            pane = self.query_one("#changes-detail", DetailPane)
            lines = pair_lines(self._rows.sides, row, pane.size.width - 2, self.state.glyphs)
            pane.set_lines([[(" ", ""), *line] for line in lines])

    @on(VirtualList.Selected, "#changes-rows")
    def _opened(self) -> None:
        if self._rows is not None and self._rows.open(self.main_list.cursor):
            self.main_list.set_model(self.main_list.model, self.main_list.cursor)

    @command("changes.next", "next difference", keys="n", footer="next", line="next")
    def next_change(self) -> None:
        self._go(1)

    @command("changes.previous", "previous difference", keys="N", footer="previous", line="previous")
    def previous_change(self) -> None:
        self._go(-1)

    def _go(self, step: int) -> None:
        row = self._rows.next(self.main_list.cursor, step) if self._rows else None
        if row is None:
            self.state.say("no further difference that way")
        else:
            self.main_list.move_to(row)

    @command("changes.back", "back to the graph", keys="escape", means="back", footer="graph", line="graph-of-edits")
    def leave(self) -> None:
        self.open("surgery")

    toggle_pane = turns_pane("changes.pane", "scroll the text, or back to the list")
