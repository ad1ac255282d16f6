"""The Textual app: bars around one page at a time, looks, leaving in good order."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.drivers.linux_driver import LinuxDriver
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import absolute_path, user_path
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.tui.command_center import CommandCenter
from layerwise._tool.tui.commands import command, in_scopes, read_keymap, use_keymap
from layerwise._tool.tui.controllers.debugging import DebugController
from layerwise._tool.tui.controllers.errors_page import ErrorsController, LocalErrors
from layerwise._tool.tui.controllers.jobs import JobsController
from layerwise._tool.tui.controllers.opening import open_model, read_modules
from layerwise._tool.tui.controllers.perf import PerfController
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.leaving import SessionKeeper, on_end_signals, terminal_is_there
from layerwise._tool.tui.presenters.bars import tab_line
from layerwise._tool.tui.presenters.text import choose_glyphs
from layerwise._tool.tui.screens.debug import DebugScreen
from layerwise._tool.tui.screens.errors_page import ErrorsScreen
from layerwise._tool.tui.screens.graph import GraphScreen
from layerwise._tool.tui.screens.history import ChangesScreen, HistoryScreen
from layerwise._tool.tui.screens.jobs import JobsScreen
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.perf import PerfScreen
from layerwise._tool.tui.screens.run import RunScreen
from layerwise._tool.tui.screens.surgery import SurgeryScreen
from layerwise._tool.tui.state.session import SessionStore
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.themes import DEFAULT, PALETTES, textual_theme
from layerwise._tool.tui.typed.driver import KeyDriver
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.bars import CommandBar, Footer, TitleBar
from layerwise._tool.tui.widgets.lines import LineWidget, OneLine

PAGES: tuple[type[Page], ...] = (
    GraphScreen, ErrorsScreen, JobsScreen, DebugScreen, SurgeryScreen, HistoryScreen, ChangesScreen, PerfScreen,
    RunScreen,
)  # fmt: skip
WATCH_EVERY = 2.0
WARM_AFTER = 2.0
OPEN_WAIT = 3.0
"""Seconds that keys typed at the start wait for the model, at most."""


def open_workbench(
    model: Path | None, root: Path | None = None, job: int | None = None, before: Path | None = None
) -> "Workbench":
    """The app on `model` with the session that the workspace remembers; with `job`, on that comparison's table.

    before: the model to go back to.
    """
    workspace = Workspace(root)
    store = SessionStore(workspace.root)
    state = AppState(workspace, JobClient(workspace, ACTIONS), store.load(model), choose_glyphs())
    if job is not None:
        state.session.set_compare_job(str(job))
        state.session.set_screen("errors")
    return Workbench(state, store, before)


class MainScreen(Screen[None], inherit_bindings=False):
    """Textual paints a whole screen again when the focus moves; ours has nothing that shows it. All keys are ours."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)


def _shows(page: str, title: str, key: str, footer: str = "") -> Callable[["Workbench"], Awaitable[None]]:
    """The command that brings a page to the front."""

    async def show(self: "Workbench") -> None:
        await self.show_page(page)

    return command(f"app.{page}", title, keys=key, footer=footer, line=page)(show)


class Workbench(CommandCenter, scope="global"):
    """Holds the bars and the pages; everything else is in pages, controllers and state."""

    TITLE = "Layerwise"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    Screen { layout: vertical; background: $background; overflow: hidden; }
    #pages { height: 1fr; }
    """

    def __init__(self, state: AppState, store: SessionStore, before: Path | None = None) -> None:
        super().__init__(state)
        self._before = before
        self._pages: dict[str, Page] = {}
        self._keeper = SessionKeeper(state, store)
        self._controllers = Controllers(state)
        self.next_model: Path | None = None
        for palette in PALETTES.values():
            self.register_theme(textual_theme(palette))
        self._keymap_problem = self._use_keymap(state.workspace.root / "keymap.json")
        self.theme = state.session.theme if state.session.theme in PALETTES else DEFAULT

    def _use_keymap(self, path: Path) -> str:
        try:
            keymap = read_keymap(path)
        except LayerwiseError as error:
            return str(error)
        use_keymap(keymap)
        self.set_keymap(keymap)
        return ""

    def get_default_screen(self) -> Screen[None]:
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        yield TitleBar(self.state)
        yield OneLine(id="tabs", role="tab")
        yield Container(id="pages")
        yield CommandBar(self.state)
        yield Footer()

    async def on_mount(self) -> None:
        on_end_signals(self.leave)
        self._keeper.start()
        self.set_interval(WATCH_EVERY, self._leave_if_no_terminal)
        line = self.query_one(CommandBar)
        line.complete, line.submit = self.complete_line, self.run_line
        self._followers = (
            JobsController(self.state), ErrorsController(self.state), LocalErrors(self.state),
            DebugController(self.state), PerfController(self.state),
        )  # fmt: skip
        if self._before is not None:
            self.state.say(f":back opens {shown(self._before.name, 60)} again")
        if self._keymap_problem:
            self.state.say(self._keymap_problem, "warn")
        self.settling.wait_for(self.run_worker(self._open(), group="open"), Waits.OPENING, OPEN_WAIT)
        self.state.client.keep_warm(WARM_AFTER)
        name = self.state.session.screen
        await self.show_page(name if name in self.page_names() else "graph")
        self.app_resume_signal.subscribe(self, lambda app: self.redraw())
        self.take_keys()

    async def _open(self) -> None:
        await open_model(self.state)
        self.run_worker(read_modules(self.state, self._controllers.warm), group="open")

    def on_unmount(self) -> None:
        self.take_no_more_keys()
        self.state.client.close()

    # ── pages ──

    async def show_page(self, name: str) -> None:
        """Bring the page called `name` to the front, mounting it the first time."""
        page = self._pages.get(name)
        if page is None:
            page = self._pages[name] = next(kind for kind in PAGES if name == kind.SCOPE)(self.state, self._controllers)
            await self.query_one("#pages").mount(page)
        for other in self._pages.values():
            other.display = other is page
        self.query_one("#tabs", OneLine).set_line(tab_line(name))
        page.came_from = self.state.session.screen if len(self._pages) > 1 else ""
        self.state.session.set_screen(name)
        page.shown_again()
        page.call_after_refresh(page.paint)
        page.main_widget().focus()
        self._show_footer()

    def on_page_footer_changed(self) -> None:
        if self.query(Footer):  # gone already when the app is being left
            self._show_footer()

    def _show_footer(self) -> None:
        """Commands with a word for the footer, without global ones whose key means something else on this page."""
        own = self.page.footer_commands()
        taken = {key for found in own for key in found.keys.split(",")}
        elsewhere = [found for found in in_scopes(("global",)) if not taken.intersection(found.keys.split(","))]
        self.query_one(Footer).show([found for found in (*own, *elsewhere) if found.footer])

    @property
    def page(self) -> Page:
        return self._pages[self.state.session.screen]

    def page_names(self) -> list[str]:
        return [page.SCOPE for page in PAGES]

    async def on_page_open(self, message: Page.Open) -> None:
        await self.show_page(message.name)

    def on_page_open_model(self, message: Page.OpenModel) -> None:
        self.open_model(str(message.path))

    @command("app.open", "open another model", line="open FILE")
    def open_model(self, text: str = "") -> None:
        path = absolute_path(user_path(text))
        if not path.is_file():
            self.state.say(f"{shown(str(path))}: no such file" if text else "open which file?", "bad")
            return
        self.next_model = path
        if isinstance(self._driver, KeyDriver):
            self._driver.keeps_input = True
        self.leave()

    @command("app.back", "back to the model that was open before", line="back")
    def back(self) -> None:
        if self._before is None:
            self.state.say("no other model was open before")
        else:
            self.open_model(str(self._before))

    show_graph = _shows("graph", "graph screen", "1")
    show_errors = _shows("errors", "layer error table", "2")
    show_jobs = _shows("jobs", "jobs screen", "3")
    show_debug = _shows("debug", "searches for the culprit", "4")
    show_surgery = _shows("surgery", "change the graph: surgery", "5")
    show_perf = _shows("perf", "the slowest layers", "6")
    show_run = _shows("run", "set up a run", "R", footer="run")

    # ── looks and leaving ──

    @command("app.theme", "change colours: dark, light, contrast", keys="T", line="theme NAME", complete="theme_names")
    def set_theme(self, name: str = "") -> None:
        names = list(PALETTES)
        name = name or names[(names.index(self.theme) + 1) % len(names)]
        if name not in PALETTES:
            self.state.say(f"no theme {shown(name, 40)}; there are: {', '.join(names)}", "bad")
            return
        self.theme = name
        self.state.session.set_theme(name)

    def theme_names(self, prefix: str) -> list[str]:
        return [name for name in PALETTES if name.startswith(prefix)]

    @command("app.mouse", "mouse on or off (off: the terminal selects text)", keys="M", line="mouse")
    def toggle_mouse(self) -> None:
        driver = self._driver
        if isinstance(driver, LinuxDriver):
            on = not driver._mouse
            driver._mouse = True
            (driver._enable_mouse_support if on else driver._disable_mouse_support)()
            driver._mouse = on
            self.state.say(f"mouse {'on' if on else 'off'}")

    @command("app.redraw", "draw the whole screen again", keys="ctrl+l", line="redraw")
    def redraw(self) -> None:
        for widget in self.screen.query(LineWidget):
            widget.refresh_lines(0, widget.size.height)
        self.screen.refresh()

    @command("app.suspend", "stop for the shell; `fg` comes back", keys="ctrl+z", line="suspend")
    def suspend_app(self) -> None:
        self.action_suspend_process()

    @command("app.quit", "leave; jobs go on (ctrl+c leaves a line or a list first)", keys="q,ctrl+q,ctrl+c",
             footer="quit", line="q")  # fmt: skip
    def leave(self) -> None:
        self._keeper.save()
        self.exit()

    def _leave_if_no_terminal(self) -> None:
        """With SIGHUP ignored nobody tells us that the terminal is gone; Textual would spin for ever."""
        if not self.is_headless and not terminal_is_there():
            self._keeper.save()
            os._exit(1)
