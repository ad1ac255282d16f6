"""The user's settings in the app: keys, presets, own commands, the theme, the line to the terminal."""

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import RenderableType
from textual.app import SuspendNotSupported
from textual.events import Key
from textual.filter import Monochrome, NoColor
from textual.screen import Screen

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.command_center import CommandCenter
from layerwise._tool.tui.commands import Commands, in_scopes, scopes_of
from layerwise._tool.tui.controllers.own_commands import Subject
from layerwise._tool.tui.controllers.slow_line import SlowLine
from layerwise._tool.tui.keys import PRESETS, put_in_force, read_keymap, taken_keys, usable
from layerwise._tool.tui.screens.chooser import Choice, PickScreen
from layerwise._tool.tui.screens.counting import Counting
from layerwise._tool.tui.screens.headless import HeadlessCommands
from layerwise._tool.tui.screens.keys import Asking, KeyCommands
from layerwise._tool.tui.screens.own_commands import OwnCommands
from layerwise._tool.tui.screens.slow_line import SlowLineCommands
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.themes import DEFAULT, PALETTES, TERMINAL
from layerwise._tool.tui.themes.lean import TerminalColours
from layerwise._tool.tui.typed.driver import KeyDriver
from layerwise._tool.tui.typed.mirror import Mirror, Size
from layerwise._tool.tui.widgets.escape_codes import erases_in_colour
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import DetailPane
from layerwise._tool.tui.widgets.shown_cells import ShownCells
from layerwise._tool.tui.widgets.virtual_list import VirtualList


def first_theme(state: AppState, problems: list[str]) -> str:
    """The theme to start with; a setting that names none is added to the problems."""
    named = state.settings.theme
    if named and named not in PALETTES:
        problems.append(f"theme {shown(named, 40)!r}: there are {', '.join(PALETTES)}")
    wanted = named if named in PALETTES else state.session.theme
    return wanted if wanted in PALETTES else DEFAULT


class Customised(CommandCenter, scope="global"):
    """The command center with the keys and commands of the user, and looks that his line to the terminal can take.

    lean: fewer styles are wanted. shown_cells: what his terminal shows.
    """

    lean = False
    _mirror: Mirror | None = None

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        if self.no_color:  # in Textual's grey, red is darker than text
            self._filters = [NoColor() if isinstance(found, Monochrome) else found for found in self._filters]
        self._all_filters = self._filters
        self.slow_line = SlowLine(state, self._restyle)
        self.shown_cells = ShownCells(erases_in_colour())

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        super()._display(screen, self.shown_cells.only_changed(renderable))

    def watch_line(self) -> None:
        """Begin to look how fast the line to the terminal is."""
        driver = self._driver if isinstance(self._driver, KeyDriver) else None
        if driver is not None:
            driver.answered = self.slow_line.answered
            self._mirror = Mirror(self.state.workspace.root, lambda: Size(*self.size), self._draw_for_watcher)
            self._mirror.start()
            driver.drawn = self._mirror.send
        self.slow_line.start(driver)

    def _draw_for_watcher(self) -> None:
        """Draw all for somebody who has come; of how his terminal erases nothing is known."""
        self.shown_cells.erases = False
        self.redraw()

    def leave_watchers(self, *, ending: bool = False) -> None:
        """Those who watch the screen come again, as after another size, or not."""
        if self._mirror is not None:
            (self._mirror.close if ending else self._mirror.leave_all)()

    def on_resize(self) -> None:
        self.leave_watchers()
        self.redraw()  # a terminal that was narrower for a moment has lost what stood there

    def _restyle(self, lean: bool) -> None:
        self.lean = lean
        self.watch_theme()
        self.redraw()

    def watch_theme(self) -> None:
        """With the terminal's own colours there are no others."""
        own = (self.lean or self.theme == TERMINAL) and not self.no_color
        self._filters = [TerminalColours()] if own else self._all_filters

    def redraw(self) -> None:
        """Draw the whole screen again."""
        raise NotImplementedError

    def settings_groups(self) -> tuple[Commands, ...]:
        """The commands about settings, and those that settings declare."""
        self._user_keys: dict[str, str] = {}
        self._own = OwnCommands(self.state, self.subject, self._away)
        asking = Asking(self._choose, self._ask_line, self._use_keymap, lambda: dict(self._user_keys))
        headless = HeadlessCommands(self.state, self.subject, self._choose, self.copy)
        line = SlowLineCommands(self.state, self.slow_line)
        self._counting = Counting(self.state, lambda: in_scopes(self.scopes()))
        return KeyCommands(self.state, asking), self._own, headless, line, self._counting

    async def _take_on_page(self, event: Key) -> bool:
        return await self._take_count(event.key) or await super()._take_on_page(event)

    async def _take_count(self, key: str) -> bool:
        """Whether the key belongs to a count, or is the move that one was typed for."""
        if isinstance(self.focused, LineInput):
            return False
        if self._counting.take(key):
            return True
        count, widget = self._counting.end(), self.focused
        move = next((found for found in in_scopes(scopes_of(widget)) if key in found.keys.split(",")), None)
        if not count or move is None or not isinstance(widget, VirtualList | DetailPane):
            return False
        way = move.id.partition(".")[2]
        if way in ("top", "bottom") and widget is self.page.main_list:
            await self._move_by(str(count))
            return True
        return widget.move_times(way, count)

    def use_settings(self) -> list[str]:
        """Put the user's commands and keys in force; what is wrong with them."""
        settings = self.state.settings
        problems = self._own.declare(settings.commands)
        try:
            older = read_keymap(self.state.workspace.root / "keymap.json")
        except LayerwiseError as error:
            older, problems = {}, [*problems, str(error)]
        preset = PRESETS[settings.preset]
        return [
            *problems,
            *self._use_keymap({**preset, **older, **self._own.keymap(settings.commands), **settings.keys}),
        ]

    def _use_keymap(self, keymap: dict[str, str]) -> list[str]:
        """Put keys in force; what is wrong with them."""
        good, problems = usable(keymap)
        self._user_keys = good
        put_in_force(good)
        self.keys_of_user = taken_keys(good)
        self.set_keymap(good)
        return problems

    def _choose(self, title: str, choices: Sequence[Choice], then: Callable[[object], None]) -> None:
        self.push_screen(PickScreen(title, choices, self.state.glyphs, filterable=True), then)

    def subject(self) -> Subject:
        """What {node}, {tensor}, {model} and {job} of a command stand for."""
        session = self.state.session
        node, tensor = self.page.in_hand()
        model = str(session.model) if session.model is not None else ""
        return Subject(node, tensor, model, session.compare_job or "")

    def _away(self, work: Callable[[], Any]) -> Any:
        """Call a function while the terminal is not the app's."""
        try:
            with self.suspend():
                return work()
        except SuspendNotSupported as error:
            raise LayerwiseError("this terminal cannot be given to another program") from error
