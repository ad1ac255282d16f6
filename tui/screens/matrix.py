"""The Matrix screen: models by sides and feeds, live; a cell opens its job."""

from textual import on
from textual.app import ComposeResult

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.jobs import JobActions
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.presenters.matrix import detail_height, detail_lines, head_lines, heading, row_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.chooser import Choice
from layerwise._tool.tui.screens.page import Page, turns_pane
from layerwise._tool.tui.state.kept_place import KeptCursor
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import follow, run_work
from layerwise._tool.tui.widgets.lines import DetailPane, LinesView
from layerwise._tool.tui.widgets.virtual_list import GUTTER, LiveRows, VirtualList


class MatrixScreen(Page, scope="matrix"):
    """Figures above, the grid in the middle, the cell under the cursor below."""

    DEFAULT_CSS = """
    MatrixScreen #matrix-head { height: 3; }
    MatrixScreen #matrix-heading { height: 2; }
    MatrixScreen #matrix-list { height: 1fr; min-height: 4; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self.matrix = state.matrix
        self._names = Names(state.glyphs)
        self._actions = JobActions(state)
        self._kept, self._came_back = KeptCursor(state.session, self.SCOPE, 2), False
        rows = LiveRows(lambda: len(self.matrix.grid.models), self._row)
        self.main_list = VirtualList(rows, glyphs=state.glyphs, id="matrix-list", names=self._names)

    def compose(self) -> ComposeResult:
        yield LinesView(id="matrix-head")
        yield LinesView(id="matrix-heading")
        yield self.main_list
        yield DetailPane(id="matrix-detail")

    def on_mount(self) -> None:
        follow(self, self.matrix.on_change, self.paint)

    def _row(self, i: int, cells: int) -> Line:
        return row_line(self.matrix, i, i == self.main_list.cursor, cells, self._names)

    def paint(self) -> None:
        if not self.display or not self.size.width:
            return
        self._come_back()
        self.main_list.sync()
        self.main_list.refresh()
        room, glyphs = self.main_list.size.width - GUTTER, self.state.glyphs
        head = head_lines(self.matrix, self.size.width - 2, glyphs)
        view = self.query_one("#matrix-head", LinesView)
        view.styles.height = len(head) + 1
        view.set_lines([[(" ", ""), *line] for line in head])
        rows = self.size.height - len(head) - 3  # a line below the head, two of the heading
        self.query_one("#matrix-detail").styles.height = detail_height(len(self.matrix.grid.models), rows)
        names = heading(self.matrix, room, glyphs) if self.matrix.spec is not None else []
        self.query_one("#matrix-heading", LinesView).set_lines([[("  ", "head"), *line] for line in names])
        self._paint_detail()

    def _come_back(self) -> None:
        """Go to the cell where the cursor was left, once, when it is there."""
        if self.matrix.job and not self._came_back and self.matrix.grid.models:
            self._came_back = True
            job, row, column = self._kept.left or (0, 0, 0)
            if job == self.matrix.job:
                self.matrix.move(column - self.matrix.column)
                self.main_list.move_to(row)

    def _paint_detail(self) -> None:
        pane = self.query_one("#matrix-detail", DetailPane)
        cells = max(20, self.size.width - 2)
        told = detail_lines(self.matrix, self._number, cells, self.state.glyphs) if self.matrix.spec is not None else []
        pane.set_lines([[(" ", ""), *line] for line in told])

    @property
    def _number(self) -> int:
        """The cell under the cursor, -1 if there is none."""
        return self.matrix.grid.number(self.main_list.cursor, self.matrix.column)

    @on(VirtualList.Highlighted, "#matrix-list")
    def _cursor_moved(self) -> None:
        self._keep()
        self.paint()

    def _keep(self) -> None:
        self._come_back()
        if self._came_back:
            self._kept.keep(self.matrix.job, self.main_list.cursor, self.matrix.column)

    # ── moving ──

    @command("matrix.right", "next column", keys="l,right", means="next")
    def right(self) -> None:
        self._come(self.main_list.cursor, self.matrix.column + 1)

    @command("matrix.left", "column before it", keys="h,left", means="previous")
    def left(self) -> None:
        self._come(self.main_list.cursor, self.matrix.column - 1)

    @command("matrix.next", "next cell that did not pass, or has changed", keys="n", footer="next bad")
    def next_bad(self) -> None:
        self._come_to_bad(1)

    @command("matrix.previous", "cell before this one that did not pass, or has changed", keys="N")
    def previous_bad(self) -> None:
        self._come_to_bad(-1)

    def _come_to_bad(self, by: int) -> None:
        found = self.matrix.next_bad(self.main_list.cursor, by) if self.matrix.grid.columns else None
        if found is None:
            self.state.say("no cell failed, and none has changed")
        else:
            self._come(*found)

    def _come(self, row: int, column: int) -> None:
        self.matrix.move(column - self.matrix.column)
        self.main_list.move_to(row)
        self._keep()
        self.paint()

    # ── cells and the matrix ──

    @on(VirtualList.Selected, "#matrix-list")
    @command("matrix.open", "the cell's job: its layer table, its search, or the Jobs screen", keys="enter",
             footer="open", line="open-cell")  # fmt: skip
    def open_cell(self) -> None:
        job = self.matrix.grid.job(self._number) if self._number >= 0 else 0
        self._show(job, "this cell has no job yet")

    @command("matrix.suspect", "where locating found the fault of this cell", keys="L", means="locate",
             footer="suspect", line="suspect")  # fmt: skip
    def open_suspect(self) -> None:
        ended = self.matrix.grid.ended.get(self._number)
        self._show(ended.receipt.locate if ended is not None else 0, "nothing was located for this cell")

    def _show(self, job: int, otherwise: str) -> None:
        if not job:
            self.state.say(otherwise)
            return
        try:
            view = self.state.workspace.view(job)
        except UsageError:
            self.state.say(f"job {job} was removed; what the cell came to is kept", "warn")
            return
        page = self._actions.show(view)
        if not page:
            self.state.jobs.asked = job
            self.state.say(f"job {job} has no screen of its own: here it is among the jobs")
        self.open(page or "jobs")

    @command(
        "matrix.cancel", "stop the matrix (asks first); what is finished stays", keys="K", footer="stop", line="cancel"
    )
    def cancel(self) -> None:
        if not self.matrix.facts.live:
            self.state.say("no matrix is running here")
            return
        choices = [Choice([("y  ", "key"), (f"stop job {self.matrix.job}", "")], self.matrix.job, "y"),
                   Choice([("n  ", "key"), ("let it run", "")], None, "n")]  # fmt: skip
        self.choose("Stop the matrix?", choices, self._cancel)

    def _cancel(self, job: int) -> None:
        run_work(self, "job-action", lambda: self._actions.cancel(job))

    @command("matrix.retry", "run what is not finished again", keys="r", means="start", footer="again", line="retry")
    def retry(self) -> None:
        if self.matrix.job and not self.matrix.facts.live:
            run_work(self, "job-action", lambda: self._actions.retry(self.matrix.job))
        else:
            self.state.say("it is running" if self.matrix.job else "no matrix in this workspace yet")

    toggle_pane = turns_pane("matrix.pane", "scroll the cell's facts, or back to the grid")

    @command("matrix.yank", "copy the cell's command line, the matrix's, or a bundle's folder", keys="y", footer="yank")
    def yank(self) -> None:
        targets: list[Copy] = []
        spec = self.matrix.spec
        if self._number >= 0:
            targets.append(Copy("c", "command", tuple(self.matrix.grid.cells[self._number].job.command)))
            ended = self.matrix.grid.ended.get(self._number)
            if ended is not None and ended.receipt.bundle:
                targets.append(Copy("b", "bundle", (ended.receipt.bundle,)))
            if ended is not None and ended.receipt.path:
                targets.append(Copy("f", "folder", (ended.receipt.path,)))
        if spec is not None:
            targets.append(Copy("m", "matrix", ("layerwise", "matrix", spec.file)))
        self.offer_copies(targets)
