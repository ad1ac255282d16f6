"""The history of edits: a tree to walk; any state can be gone to, and edited from there as a branch."""

from collections.abc import Awaitable

from textual import on
from textual.app import ComposeResult
from textual.events import Resize

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.surgery import surgeon
from layerwise._tool.tui.presenters.edit_history import Branch, branch_row, branches
from layerwise._tool.tui.presenters.ghost import step_lines
from layerwise._tool.tui.presenters.text import Line, wrap_runs
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.coalesce import Coalesce
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.detail_pane import DetailPane
from layerwise._tool.tui.widgets.lines import OneLine
from layerwise._tool.tui.widgets.virtual_list import VirtualList

DETAIL_WAIT = 0.06


class HistoryRows:
    """Rows of the tree, styled."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self.branches: list[Branch] = []

    def __len__(self) -> int:
        return len(self.branches)

    def row(self, i: int, cells: int) -> Line:
        return branch_row(self.branches[i], self._app.surgery, cells, self._app.glyphs)


class HistoryScreen(Page, scope="history"):
    """The tree above, what the edit under the cursor changed below."""

    DEFAULT_CSS = """
    HistoryScreen #history-detail { height: 40%; min-height: 4; }
    """

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self._rows = HistoryRows(state)
        self._list = VirtualList(self._rows, glyphs=state.glyphs, id="history-rows")
        self._detail_soon = Coalesce(self._ask_detail, DETAIL_WAIT)

    def compose(self) -> ComposeResult:
        yield OneLine(id="history-head")
        yield self._list
        yield DetailPane(id="history-detail")

    def on_mount(self) -> None:
        self.follow(self.state.surgery.on_change, self._changed)
        self.run_work("surgery-open", surgeon(self.state).open)
        self._changed()

    def main_widget(self) -> VirtualList:
        return self._list

    def shown_again(self) -> None:
        self._changed()
        here = [at for at, branch in enumerate(self._rows.branches) if branch.step.id == self.state.surgery.head]
        self._list.move_to(next(iter(here), 0))

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self._changed)

    def _changed(self) -> None:
        if not self.is_mounted:
            return
        self._rows.branches = branches(self.state.surgery)
        count = max(0, len(self._rows.branches) - 1)
        told = f"{count:,} edit{'s' * (count != 1)}; enter goes to a state, and an edit made there starts a branch"
        self.query_one("#history-head", OneLine).set_line([(f" {told}", "dim")])
        self._list.sync()
        self._detail_soon.touch()

    @on(VirtualList.Highlighted, "#history-rows")
    def _moved(self) -> None:
        self._detail_soon.touch()

    def _at(self) -> int:
        found = self._rows.branches
        return found[self._list.cursor].step.id if self._list.cursor < len(found) else 0

    def _ask_detail(self) -> None:
        if self.is_mounted and self.display and self.state.surgery.opened:
            at = self._at()
            self.run_latest("history-detail", lambda: self._show_detail(at))

    async def _show_detail(self, number: int) -> None:
        pane, step = self.query_one("#history-detail", DetailPane), self.state.surgery.step(number)
        cells = pane.size.width - 1
        if step is None or cells < 1:
            return
        if not number:
            pane.set_lines([[(" the model as it is on disk; nothing is changed there until it is written", "dim")]])
            return
        try:
            ghost = await surgeon(self.state).between(step.parent, number)
            lines = step_lines(ghost, cells, self.state.glyphs)
        except LayerwiseError as error:
            lines = wrap_runs([(f" {error}", "bad")], cells, 1)
        pane.set_lines([*wrap_runs([(f" {step.text}", "strong")], cells, 1), *lines])

    @on(VirtualList.Selected, "#history-rows")
    @command("history.go", "go to this state", keys="enter", footer="go there", line="state")
    async def go(self) -> None:
        await self._did(surgeon(self.state).go(self._at()), f"the model after edit {self._at()}" * bool(self._at()))

    @command("history.sides", "this state beside the current one (which stands beside the file)", keys="D",
             footer="side by side", line="sides")  # fmt: skip
    async def side_by_side(self) -> None:
        at, head = self._at(), self.state.surgery.head
        if await self._did(surgeon(self.state).compare(at if at != head else 0, head)):
            self.post_message(self.Open("changes"))

    @command("history.undo", "undo", keys="u", footer="undo", line="undo")
    async def undo(self) -> None:
        await self._did(surgeon(self.state).undo())

    @command("history.redo", "redo", keys="ctrl+r", footer="redo", line="redo")
    async def redo(self) -> None:
        await self._did(surgeon(self.state).redo())

    @command("history.back", "back to the graph", keys="escape,H", footer="graph", line="graph-of-edits")
    def leave(self) -> None:
        self.post_message(self.Open("surgery"))

    @command("history.pane", "scroll the text, or back to the list", keys="tab")
    def toggle_pane(self) -> None:
        pane = self.query_one("#history-detail", DetailPane)
        (self._list if pane.has_focus else pane).focus()

    async def _did(self, work: Awaitable[object], done: str = "") -> bool:
        try:
            await work
        except LayerwiseError as error:
            self.state.say(str(error), "bad")
            return False
        if done:
            self.state.say(done)
        return True
