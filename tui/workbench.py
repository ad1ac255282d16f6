"""The Textual app: bars around one page at a time, looks, leaving in good order."""

import os
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.drivers.linux_driver import LinuxDriver
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget
from textual.worker import Worker

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.jobs.client import JobClient
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.settings import PROJECT, Loaded, load_settings
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.tui.commands import command, in_scopes
from layerwise._tool.tui.controllers.debugging import DebugController
from layerwise._tool.tui.controllers.errors_page import ErrorsController, LocalErrors
from layerwise._tool.tui.controllers.jobs import JobActions, JobsController
from layerwise._tool.tui.controllers.lens_effects import LensFollower
from layerwise._tool.tui.controllers.matrix import MatrixController
from layerwise._tool.tui.controllers.opening import open_model, read_modules
from layerwise._tool.tui.controllers.perf import PerfController
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.customised import Customised, first_theme
from layerwise._tool.tui.leaving import SessionKeeper, on_end_signals, terminal_is_there
from layerwise._tool.tui.lifetime import is_of_leaving
from layerwise._tool.tui.pages import PAGES, Pages
from layerwise._tool.tui.presenters.text import choose_glyphs
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.switching import Demo, Switching
from layerwise._tool.tui.screens.tour import Tour
from layerwise._tool.tui.state.session import HOME, SessionStore
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.state.surgery import KeptEdits
from layerwise._tool.tui.themes import PALETTES, textual_theme
from layerwise._tool.tui.typed.driver import KeyDriver
from layerwise._tool.tui.typed.settling import Waits
from layerwise._tool.tui.widgets.bars import CommandBar, Footer, TabBar, TitleBar
from layerwise._tool.tui.widgets.lines import LineWidget
from layerwise._tool.tui.widgets.paced import PacedScreen

WATCH_EVERY = 2.0
WARM_AFTER = 2.0
OPEN_WAIT = 3.0
SWITCH_WAIT = 3600.0
"""Seconds that keys typed at the start wait for the model, at most."""


def open_workbench(
    model: Path | None, root: Path | None = None, job: int | None = None, before: Path | None = None,
    demo: Demo | None = None, tour: bool = False,
) -> "Workbench":  # fmt: skip
    """The app on `model` (None: on the Home screen) with the session that the workspace remembers.

    job: what to show first. before: the model to go back to. demo: who makes the demo.
    tour: begin it.
    """
    workspace = Workspace(root)
    store = SessionStore(workspace.root)
    loaded = load_settings()
    session = store.load(model)
    state = AppState(workspace, JobClient(workspace, ACTIONS), session, choose_glyphs(), loaded.settings)
    if model is not None and session.screen == HOME:
        session.set_screen("graph")
    if job is not None:
        with suppress(LayerwiseError):  # it was removed meanwhile
            session.set_screen(JobActions(state).show(workspace.view(job)) or "jobs")
    return Workbench(state, store, before, demo, loaded, tour)


class MainScreen(PacedScreen[None], inherit_bindings=False):
    """Textual paints a whole screen again when the focus moves; ours has nothing that shows it. All keys are ours."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)


def _shows(
    page: str, title: str, key: str, footer: str = "", instead: str = ""
) -> Callable[["Workbench"], Awaitable[None]]:
    """The command that brings a page to the front."""

    async def show(self: "Workbench") -> None:
        await self.show_page(page)

    return command(f"app.{page}", title, keys=key, footer=footer, line=page, instead=instead)(show)


class Workbench(Customised, scope="global"):
    """Holds the bars and the pages; everything else is in pages, controllers and state."""

    TITLE = "Layerwise"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    Screen { layout: vertical; background: $background; overflow: hidden; }
    """

    def __init__(
        self, state: AppState, store: SessionStore, before: Path | None = None, demo: Demo | None = None,
        loaded: Loaded = Loaded(), tour: bool = False,  # noqa: B008 (it is frozen)
    ) -> None:  # fmt: skip
        super().__init__(state)
        self._before = before
        self._keeper = SessionKeeper(state, store)
        self._controllers = Controllers(state)
        self._pages = Pages(state, self._controllers)
        self.switching = Switching(state, self._leave_for_next, before, demo)
        self.switching.on_begin.subscribe(self._wait_for_switch)
        self._controllers.open_model = self.switching.switch
        for palette in PALETTES.values():
            self.register_theme(textual_theme(palette))
        self._tour, self._begin_tour = Tour(state, self.switching, self.show_page), tour
        self.groups = (*self.settings_groups(), self.switching, self._tour)
        self._told = [*loaded.problems, *self.use_settings()]
        self._project = next((path for path in loaded.files if path.name == PROJECT), None)
        self.theme = first_theme(state, self._told)

    @property
    def next_model(self) -> Path | None:
        """The model that the app was left for."""
        return self.switching.model

    @property
    def next_job(self) -> int | None:
        """What is to be on view there."""
        return self.switching.job

    def get_default_screen(self) -> Screen[None]:
        return MainScreen(id="_default")

    def compose(self) -> ComposeResult:
        yield TitleBar(self.state)
        yield TabBar()
        yield self._pages
        yield CommandBar(self.state)
        yield Footer()

    async def on_mount(self) -> None:
        on_end_signals(self.leave)
        self._keeper.start()
        self.watch_line()
        self.set_interval(WATCH_EVERY, self._leave_if_no_terminal)
        line = self.query_one(CommandBar)
        line.complete, line.submit, line.hint = self.complete_line, self.run_line, self.line_hint
        self._followers = (
            JobsController(self.state), ErrorsController(self.state), LocalErrors(self.state), LensFollower(self.state),
            DebugController(self.state), PerfController(self.state), MatrixController(self.state),
        )  # fmt: skip
        if self._before is not None:
            self.state.say(f":back opens {shown(self._before.name, 60)} again")
        self._tell_settings()
        self.settling.wait_for(self._soon(self._open), Waits.OPENING, OPEN_WAIT)
        self.state.client.keep_warm(WARM_AFTER)
        name = self.state.session.screen
        await self.show_page(name if name in self.page_names() else "graph")
        if self.state.session.line:
            self._ask_line(self.state.session.line)
        if self._begin_tour:
            await self._tour.tour()
        self.app_resume_signal.subscribe(self, lambda app: self.redraw())
        self.take_keys()

    def _tell_settings(self) -> None:
        """What is wrong in the settings, else which project's file gave some."""
        if self._told:
            more = f" (and {len(self._told) - 1} more: layerwise doctor)" if len(self._told) > 1 else ""
            self.state.say(self._told[0] + more, "warn")
        elif self._project is not None:
            self.state.say(f"with the settings of {shown(str(self._project))}")

    async def _open(self) -> None:
        await open_model(self.state)
        self._soon(partial(read_modules, self.state, self._controllers.warm))
        if KeptEdits.of(self.state.session).edits:
            self._soon(self._controllers.surgery.open)

    def _soon(self, work: Callable[[], Coroutine[None, None, object]]) -> Worker[object]:
        return self.run_worker(work, group="open")  # which calls it when it starts: the app may end before

    def on_unmount(self) -> None:
        self.take_no_more_keys()
        self.leave_watchers(ending=True)
        self._keeper.save_what_changed()
        self.state.client.close()

    # ── pages ──

    async def show_page(self, name: str) -> None:
        """Bring the page called `name` to the front, mounting it the first time."""
        await self._pages.show(name)
        self.query_one(TabBar).show(name)
        self._show_footer()

    def _wait_for_switch(self) -> None:
        """Keys typed while a model is read are for that."""
        self.settling.wait_for(self.switching, Waits.OPENING, SWITCH_WAIT)

    def gives_up(self) -> bool:
        return self.switching.stay()

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
        return self._pages.front

    def page_names(self) -> list[str]:
        return [page.SCOPE for page in PAGES]

    async def on_page_open(self, message: Page.Open) -> None:
        await self.show_page(message.name)

    async def on_page_open_model(self, message: Page.OpenModel) -> None:
        await self.switching.switch(message.path)

    async def on_page_demo(self) -> None:
        await self.switching.demo()

    show_home = _shows(HOME, "what to open: earlier models, jobs, files", "0", instead="app.open")
    show_graph = _shows("graph", "graph screen", "1", instead="app.open")
    show_errors = _shows("errors", "layer error table", "2", instead="errors.filter_line")
    show_jobs = _shows("jobs", "jobs screen", "3", instead="jobs.filter_line")
    show_debug = _shows("debug", "searches for the culprit", "4", instead="debug.start")
    show_surgery = _shows("surgery", "change the graph: surgery", "5", instead="surgery.any")
    show_perf = _shows("perf", "the slowest layers", "6", instead="perf.bench_line")
    show_matrix = _shows("matrix", "models by sides and feeds", "7")
    show_run = _shows("run", "set up a run", "R", footer="run", instead="app.open")

    # ── looks and leaving ──

    @command("app.theme", "change colours: dark, light, contrast, colour-blind, terminal", keys="T", line="theme NAME",
             complete="theme_names")  # fmt: skip
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
        self.shown_cells.forget()
        for screen in self.screen_stack:
            for widget in screen.query(LineWidget):
                widget.refresh_lines(0, widget.size.height)
            screen.refresh()

    @command("app.suspend", "stop for the shell; `fg` comes back", keys="ctrl+z", line="suspend")
    def suspend_app(self) -> None:
        self.action_suspend_process()

    @command("app.quit", "leave; jobs go on (ctrl+c leaves a line or a list first)", keys="q,ctrl+q,ctrl+c",
             footer="quit", line="q")  # fmt: skip
    def leave(self) -> None:
        self._keeper.save()
        self.exit()

    def _handle_exception(self, error: Exception) -> None:
        if not is_of_leaving(error, self):
            super()._handle_exception(error)

    def _leave_for_next(self) -> None:
        """Leave for another app, which gets what was typed and not read."""
        if isinstance(self._driver, KeyDriver):
            self._driver.keeps_input = True
        self.leave()

    def _leave_if_no_terminal(self) -> None:
        """With SIGHUP ignored nobody tells us that the terminal is gone; Textual would spin for ever."""
        if not self.is_headless and not terminal_is_there():
            self._keeper.save()
            os._exit(1)
