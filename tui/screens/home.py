"""The Home screen: what may be opened, with a look into it: earlier models, jobs, files below the current folder."""

import asyncio
import time
from pathlib import Path

from textual import on
from textual.app import ComposeResult
from textual.events import Key

from layerwise._tool.backends.filesystem.places import absolute_path
from layerwise._tool.tui.commands import command
from layerwise._tool.tui.controllers.home import HomeController
from layerwise._tool.tui.controllers.jobs import JobActions
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.presenters.home import empty_lines, head_line, job_lines, preview_lines, row_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.home import HomeRow, HomeState
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import Soon, follow, run_latest
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import LinesView, LiveLine
from layerwise._tool.tui.widgets.virtual_list import LiveRows, VirtualList

PREVIEW_WAIT = 0.06


class HomeScreen(Page, scope="home"):
    """The list above, what is known of the row under the cursor below."""

    DEFAULT_CSS = """
    HomeScreen #home-list { height: 1fr; min-height: 4; }
    HomeScreen #home-preview { height: 40%; max-height: 12; }
    """

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(state, controllers)
        self._home = HomeState(absolute_path(Path()))
        self._control = HomeController(state, self._home)
        self._actions = JobActions(state)
        self._at: tuple[str, str, int] | None = None
        self._before: tuple[str, str, int] | None = None
        self._names = Names(state.glyphs)
        self.main_list = VirtualList(
            LiveRows(lambda: len(self._home.rows), self._line),
            glyphs=state.glyphs,
            id="home-list",
            names=self._names,
        )
        self._preview_soon = Soon(self, self._preview_now, PREVIEW_WAIT)

    def compose(self) -> ComposeResult:
        yield LiveLine(lambda cells: head_line(self._home, cells), id="home-head")
        yield LineInput("/ ", id="home-filter")
        yield self.main_list
        yield LinesView(id="home-preview")

    def on_mount(self) -> None:
        follow(self, self.state.jobs.on_change, self._control.take_jobs)
        follow(self, self._home.on_change, self._changed)
        self._control.take_jobs()

    def shown_again(self) -> None:
        self._control.take_recent()
        run_latest(self, "home-look", self._control.look)

    def _line(self, i: int, cells: int) -> Line:
        return row_line(self._home.rows[i], time.time(), cells, self._names)

    # ── drawing ──

    def _changed(self) -> None:
        """Rows came or went: the cursor stays on its own."""
        field = self.query_one("#home-filter", LineInput)
        if field.has_focus:  # from where the cursor was, whatever is typed on the way
            self._at = self._before
        line = self._home.line_of(self._at)
        if line >= 0 or field.has_focus:
            self.main_list.move_to(line)
        self.main_list.sync()
        self.main_list.set_instead(empty_lines(self._home))
        self.query_one("#home-head", LiveLine).refresh()
        self._preview_soon.touch()

    def paint(self) -> None:
        self._changed()

    @property
    def _row(self) -> HomeRow | None:
        rows = self._home.rows
        return rows[self.main_list.cursor] if self.main_list.cursor < len(rows) else None

    @on(VirtualList.Highlighted, "#home-list")
    def _moved(self) -> None:
        row = self._row
        self._at = row.key if row is not None else None
        self._preview_soon.touch()

    def on_lines_view_resized(self) -> None:
        self._preview_soon.touch()

    def _preview_now(self) -> None:
        if self.display and self.is_mounted:
            run_latest(self, "home-preview", self._show_preview)

    async def _show_preview(self) -> None:
        row, view = self._row, self.query_one("#home-preview", LinesView)
        cells = max(20, view.size.width - 2)
        lines: list[Line] = []
        if row is not None and row.job:
            lines = job_lines(row, self._control.command_of(row.job), cells)
        elif row is not None and row.path is not None:
            lines = preview_lines(row.path, await self._control.preview(row.path), cells, self.state.glyphs)
        view.set_lines([[], *([(" ", ""), *line] for line in lines)])

    # ── filter ──

    @command("home.filter", "narrow the rows: words that must occur", keys="slash", footer="filter",
             line="filter TEXT")  # fmt: skip
    def filter(self, text: str = "") -> None:
        field = self.query_one("#home-filter", LineInput)
        if text:
            field.set_value(text)
            self._home.set_filter(text)
        else:
            self._before = self._at
            field.focus()

    @on(LineInput.Changed, "#home-filter")
    def _typed(self, event: LineInput.Changed) -> None:
        self._home.set_filter(event.value)

    @on(LineInput.Submitted, "#home-filter")
    def _typed_all(self) -> None:
        row = self._row
        self._at = row.key if row is not None else self._before
        self.main_list.focus()

    @on(LineInput.Cancelled, "#home-filter")
    @command("home.all", "show all rows again", keys="escape", means="back")
    def show_all(self) -> None:
        self.query_one("#home-filter", LineInput).set_value("")
        self._home.set_filter("")
        self.main_list.focus()

    # ── opening ──

    async def take_key(self, event: Key) -> bool:
        """Enter opens at once, so that keys typed ahead find the model open."""
        if event.key != "enter" or not self.main_list.has_focus:
            return False
        await self._open(self._row)
        return True

    async def _open(self, row: HomeRow | None) -> None:
        if row is None:
            return
        away = row.path is not None and row.path != self.session.model
        if row.path is not None and away and (not row.job or await asyncio.to_thread(row.path.is_file)):
            await self.controllers.open_model(row.path, row.job or None)
        elif row.job:
            view = self.state.jobs.view(row.job)
            self.open((self._actions.show(view) if view is not None else "") or "jobs")
        else:
            self.open("graph")

    @command("home.demo", "the demo: a small transformer against its FP16 form", keys="Y", footer="demo")
    def open_demo(self) -> None:
        self.post_message(self.Demo())
