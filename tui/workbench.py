"""The Textual app: bars around one page at a time, commands, leaving in good order."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Event, Key
from textual.reactive import Reactive
from textual.screen import Screen
from textual.widget import Widget

from backends.jobs.client import JobClient
from backends.jobs.store import Workspace
from tui.commands import REGISTRY, Command, Commanded, command, in_scopes
from tui.controllers.command_line import complete_line, parse_line
from tui.controllers.errors import ErrorsController
from tui.controllers.jobs import JobsController
from tui.controllers.opening import open_model
from tui.controllers.yank import yank
from tui.presenters.glyphs import choose_glyphs
from tui.presenters.help import command_rows
from tui.screens.errors import ErrorsScreen
from tui.screens.graph import GraphScreen
from tui.screens.jobs import JobsScreen
from tui.screens.page import Page
from tui.screens.pick import Choice, PickScreen
from tui.screens.run import RunScreen
from tui.state.session import SessionStore
from tui.state.shared import AppState
from tui.themes import DEFAULT, PALETTES, textual_theme
from tui.widgets.bars import CommandBar, Footer, TabBar, TitleBar
from tui.widgets.line_input import LineInput

PAGES: tuple[type[Page], ...] = (GraphScreen, ErrorsScreen, JobsScreen, RunScreen)
SAVE_AFTER = 0.5
WATCH_EVERY = 2.0


def open_workbench(model: Path | None, root: Path | None = None) -> "Workbench":
    """The app on `model` with the session that the workspace remembers."""
    workspace = Workspace(root)
    store = SessionStore(workspace.root)
    state = AppState(workspace, JobClient(workspace), store.load(model), choose_glyphs())
    return Workbench(state, store)


class Frame(Screen[None]):
    """Textual paints a whole screen again when the focus moves; ours has nothing that shows it."""

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)


class Workbench(Commanded, App[None], scope="global"):
    """Holds the bars and the pages; everything else is in pages, controllers and state."""

    TITLE = "Layerwise"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = []
    CSS = """
    Screen { layout: vertical; background: $background; overflow: hidden; }
    #pages { height: 1fr; }
    """

    def __init__(self, state: AppState, store: SessionStore) -> None:
        super().__init__()
        self.state = state
        self._store = store
        self._pages: dict[str, Page] = {}
        self._save_timer: asyncio.TimerHandle | None = None
        for palette in PALETTES.values():
            self.register_theme(textual_theme(palette))
        self.theme = state.session.theme if state.session.theme in PALETTES else DEFAULT

    def get_default_screen(self) -> Screen[None]:
        return Frame(id="_default")

    def compose(self) -> ComposeResult:
        yield TitleBar(self.state)
        yield TabBar()
        yield Container(id="pages")
        yield CommandBar(self.state)
        yield Footer()

    async def on_mount(self) -> None:
        self._on_signals(self.leave)
        self.set_interval(WATCH_EVERY, self._leave_if_no_terminal)
        self.state.session.on_saved_change.subscribe(self._save_soon)
        line = self.query_one(CommandBar)
        line.complete, line.submit = self._complete, self._run_line
        self._followers = (ErrorsController(self.state), JobsController(self.state))
        self.run_worker(open_model(self.state), group="open")
        name = self.state.session.screen
        await self.show_page(name if name in {page.SCOPE for page in PAGES} else "graph")

    # ── pages ──

    async def show_page(self, name: str) -> None:
        """Bring the page called `name` to the front, mounting it the first time."""
        page = self._pages.get(name)
        if page is None:
            page = self._pages[name] = next(kind for kind in PAGES if name == kind.SCOPE)(self.state)
            await self.query_one("#pages").mount(page)
        for other in self._pages.values():
            other.display = other is page
        self.query_one(TabBar).show(name)
        self.state.session.set_screen(name)
        page.shown_again()
        page.main_widget().focus()
        self.query_one(Footer).show(self._footer_commands(name))

    @staticmethod
    def _footer_commands(scope: str) -> list[Command]:
        """Those with a word for the footer, without global ones whose key means something else on this page."""
        own = in_scopes((scope,))
        taken = {key for found in own for key in found.keys.split(",")}
        elsewhere = [found for found in in_scopes(("global",)) if not taken.intersection(found.keys.split(","))]
        return [found for found in (*own, *elsewhere) if found.footer]

    @property
    def page(self) -> Page:
        return self._pages[self.state.session.screen]

    async def on_page_open(self, message: Page.Open) -> None:
        await self.show_page(message.name)

    @command("app.graph", "graph screen", keys="1", line="graph")
    async def show_graph(self) -> None:
        await self.show_page("graph")

    @command("app.errors", "layer error table", keys="2", line="errors")
    async def show_errors(self) -> None:
        await self.show_page("errors")

    @command("app.jobs", "jobs screen", keys="3", line="jobs")
    async def show_jobs(self) -> None:
        await self.show_page("jobs")

    @command("app.run", "set up a run", keys="R", line="run", footer="run")
    async def show_run(self) -> None:
        await self.show_page("run")

    # ── keys and commands ──

    async def on_event(self, event: Event) -> None:
        if not (isinstance(event, Key) and not event.is_forwarded and await self._take_key(event)):
            await super().on_event(event)

    async def _take_key(self, event: Key) -> bool:
        """Handle a key before the next one is looked at.

        Textual hands a key to the widget in focus and comes back to the bindings later: of keys typed ahead
        (`/relu`), those after the first would still go to the old focus.
        """
        for taker in (self.focused, self.screen):
            if isinstance(taker, LineInput | PickScreen) and await taker.take_key(event):
                return True
        return await self._check_bindings(event.key)

    def scopes(self) -> tuple[str, ...]:
        """Where a command may come from now: the page in front, the list in focus, the app."""
        focused = self.focused.SCOPE if isinstance(self.focused, Commanded) else ""
        return (self.page.SCOPE, *(scope for scope in (focused,) if scope), "global")

    async def run_anywhere(self, found: Command, text: str = "") -> None:
        """Run a command on the object of its scope."""
        await self._owner(found).run_own_command(found, text)

    def _owner(self, found: Command) -> Commanded:
        nearest: Widget | None = self.focused
        while nearest is not None:
            if isinstance(nearest, Commanded) and found.scope == nearest.SCOPE:
                return nearest
            nearest = nearest.parent if isinstance(nearest.parent, Widget) else None
        return self.page if found.scope == self.page.SCOPE else self

    @command("app.help", "keys and commands of this screen", keys="question_mark", footer="help", line="help")
    def show_help(self) -> None:
        self._offer("Help: keys and commands here (type to filter, enter runs)", in_scopes(self.scopes()))

    @command("app.palette", "all commands", keys="ctrl+p", line="commands")
    def show_palette(self) -> None:
        here = self.scopes()
        elsewhere = [found for found in REGISTRY.values() if found.scope not in here and found.scope != "list"]
        self._offer("Commands (type to filter, enter runs)", [*in_scopes(here), *elsewhere])

    def _offer(self, title: str, commands: list[Command]) -> None:
        rows = command_rows(commands)
        choices = [Choice(row, found) for row, found in zip(rows, commands, strict=True)]
        self.push_screen(PickScreen(title, choices, self.state.glyphs, filterable=True), self._run_picked)

    async def _run_picked(self, picked: object) -> None:
        if not isinstance(picked, Command):
            return
        if picked.scope not in (*self.scopes(), "list"):
            await self.show_page(picked.scope)
        if " " in picked.line:
            self._ask_line(f"{picked.verb} ")
        else:
            await self.run_anywhere(picked)

    @command("app.line", "command line", keys="colon", footer="command")
    def open_line(self) -> None:
        self._ask_line("")

    def _ask_line(self, text: str) -> None:
        line = self.query_one(CommandBar)
        line.set_value(text)
        line.focus()

    async def _run_line(self, value: str) -> None:
        self._close_line()
        try:
            found, text = parse_line(value, self.scopes())
        except ValueError as error:
            self.state.say(str(error), "bad")
            return
        if found is not None:
            await self.run_anywhere(found, text)

    @on(LineInput.Cancelled, "#command")
    def _line_cancelled(self) -> None:
        self._close_line()

    def _close_line(self) -> None:
        self.page.main_widget().focus()

    def _complete(self, value: str) -> list[str]:
        return complete_line(value, self.scopes(), lambda found, text: self._owner(found).completions(found, text))

    def on_page_yank(self, message: Page.Yank) -> None:
        self.state.say(*yank(message.text, self.state.workspace.root, self.copy_to_clipboard))

    # ── looks ──

    @command("app.theme", "change colours: dark, light, contrast", keys="T", line="theme NAME", complete="theme_names")
    def set_theme(self, name: str = "") -> None:
        names = list(PALETTES)
        name = name or names[(names.index(self.theme) + 1) % len(names)]
        if name not in PALETTES:
            self.state.say(f"no theme {name}; there are: {', '.join(names)}", "bad")
            return
        self.theme = name
        self.state.session.set_theme(name)

    def theme_names(self, prefix: str) -> list[str]:
        return [name for name in PALETTES if name.startswith(prefix)]

    # ── leaving ──

    @command("app.quit", "leave; jobs go on", keys="q,ctrl+q,ctrl+c", footer="quit", line="q")
    def leave(self) -> None:
        self._save()
        self.exit()

    def _on_signals(self, leave: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, leave)

    def _leave_if_no_terminal(self) -> None:
        """With SIGHUP ignored nobody tells us that the terminal is gone; Textual would spin for ever."""
        if self.is_headless or terminal_is_there():
            return
        self._save()
        os._exit(1)

    def _save_soon(self) -> None:
        if self._save_timer is None:
            self._save_timer = asyncio.get_running_loop().call_later(SAVE_AFTER, self._save)

    def _save(self) -> None:
        if self._save_timer is not None:
            self._save_timer.cancel()
            self._save_timer = None
        try:
            self._store.save(self.state.session)
        except OSError as error:
            self.state.say(f"the session could not be saved: {error}", "warn")


def terminal_is_there() -> bool:
    """Whether the controlling terminal still answers."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
