"""The app's side of commands: keys, help, palette and the `:` line, and who runs what."""

from collections import deque

from textual import on
from textual.app import App
from textual.dom import DOMNode
from textual.events import Event, Key

from layerwise._tool.tui.commands import (
    Command,
    Commanded,
    by_verb,
    command,
    going_on,
    group_of,
    in_scopes,
    is_count,
    key_name,
    line_completions,
    parse_line,
    run_command,
    scopes_of,
    takes_path,
)
from layerwise._tool.tui.controllers.yank import Copy, yank
from layerwise._tool.tui.presenters.bars import command_rows, offers_line, usage_line
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.page import Choice, Page, PickScreen
from layerwise._tool.tui.state.files import complete_path
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.bars import CommandBar
from layerwise._tool.tui.widgets.line_input import LineInput

_GIVES_UP = ("escape", "ctrl+c", "ctrl+q")
_TYPED_AHEAD = "ctrl+j"  # what a terminal makes of enter before the app has told it not to


class CommandCenter(Commanded, App[None], scope="global"):
    """Base of the app. Its pages, and which is in front, are the subclass's matter."""

    def __init__(self, state: AppState) -> None:
        super().__init__()
        self.state = state
        self._keys: deque[Key] = deque()
        self.keys_of_user: dict[str, list[str]] = {}
        self._begun = ""

    @property
    def page(self) -> Page:
        """The page in front."""
        raise NotImplementedError

    async def show_page(self, name: str) -> None:
        """Bring the page called `name` to the front."""
        raise NotImplementedError

    def page_names(self) -> list[str]:
        """All pages, shown yet or not."""
        raise NotImplementedError

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key) and not event.is_forwarded:
            if self.holds_keys() and event.key in _GIVES_UP:
                self.stay()
                return
            self._keys.append(Key("enter", "\r") if event.key == _TYPED_AHEAD else event)
            await self._take_keys()
        else:
            await super().on_event(event)

    async def on_pick_screen_ready(self) -> None:
        await self._take_keys()

    async def _take_keys(self) -> None:
        """Handle the keys typed so far, one after the other; those for a chooser wait until it stands."""
        while self._keys and not self._exit and not self.holds_keys():
            if isinstance(self.screen, PickScreen) and not self.screen.ready:
                break
            await self._take_key(self._keys.popleft())

    @property
    def keys_left(self) -> list[Key]:
        """Keys that were typed after the one that left the app: they are the next one's."""
        return list(self._keys)

    async def take_waiting_keys(self) -> None:
        """Handle keys that were held back."""
        await self._take_keys()

    def holds_keys(self) -> bool:
        """Whether keys wait, since they are for what comes."""
        return False

    def stay(self) -> None:
        """What comes is given up, and the keys that were typed for it."""
        self._keys.clear()

    async def _take_key(self, event: Key) -> None:
        """Handle a key before the next one is looked at; one that means nothing here is dropped.

        Textual hands a key to the widget in focus and comes back to the bindings later: of keys typed ahead
        (`/relu`), those after the first would still go to the old focus.
        """
        for taker in (self.focused, self.screen):
            if isinstance(taker, LineInput | PickScreen) and await taker.take_key(event):
                return
        if self.screen.is_modal or not await self._take_on_page(event):
            await self._check_bindings(event.key)

    async def _take_on_page(self, event: Key) -> bool:
        return (
            await self._take_sequence(event.key)
            or await self.page.take_key(event)
            or await self._take_users_key(event.key)
        )

    async def _take_users_key(self, key: str) -> bool:
        """Whether the user gave a command of this place the key: those declared without a key have no binding.

        While a line is typed none of them is meant.
        """
        given = () if isinstance(self.focused, LineInput) else self.keys_of_user.get(key, ())
        found = next((found for found in in_scopes(self.scopes()) if key in found.keys.split(",")), None)
        if found is None or found.id not in given:
            return False
        await self.run_anywhere(found)
        return True

    async def _take_sequence(self, key: str) -> bool:
        """Whether the key begins, goes on with or ends a command of several keys; escape gives one up."""
        begun, self._begun = self._begun, ""
        typed = f"{begun} {key}".strip()
        found = going_on(typed, self.scopes())
        if "" in found:
            self.state.say("")
            await self.run_anywhere(found[""])
        elif found:
            self._begun = typed
            offers = (f"{key_name(rest)} {command.title}" for rest, command in found.items())
            self.state.say(f"{''.join(map(key_name, typed.split()))}   {'   '.join(offers)}")
        elif begun:
            self.state.say("")
        return bool(found) or (bool(begun) and key == "escape")

    def scopes(self) -> tuple[str, ...]:
        """Where a command may come from now: the page in front, the list in focus, the app."""
        return (*self.page.SCOPES, *scopes_of(self.focused), "global")

    async def run_anywhere(self, found: Command, text: str = "") -> None:
        """Run a command on the widget of its scope."""
        await run_command(self.owner(found), found, text)

    def owner(self, found: Command) -> DOMNode:
        """The widget that has a command: the nearest around the focus, else one of the page, else the app."""
        around = self.focused.ancestors_with_self if self.focused is not None else []
        here = (*around, self.page, *self.page.query())
        return next((node for node in here if found.scope in scopes_of(node)), self)

    @command("app.help", "keys and commands of this screen", keys="question_mark", footer="help", line="help")
    def show_help(self) -> None:
        here = [*self.page.footer_keys(), *in_scopes(self.scopes())]
        self._offer("Help: keys and commands here (type to filter, enter runs)", here)

    @command("app.palette", "all commands", keys="ctrl+p", line="commands")
    def show_palette(self) -> None:
        here = self.scopes()
        others = [name for name in self.page_names() if name not in here]
        elsewhere = in_scopes(others)
        self._offer("Commands (type to filter, enter runs)", [*in_scopes(here), *elsewhere])

    def _offer(self, title: str, commands: list[Command]) -> None:
        rows = command_rows(commands, self.state.glyphs)
        choices = [Choice(row, found) for row, found in zip(rows, commands, strict=True)]
        self.push_screen(PickScreen(title, choices, self.state.glyphs, filterable=True), self._run_picked)

    async def _run_picked(self, picked: object) -> None:
        if not isinstance(picked, Command):
            return
        if picked.scope in self.page_names() and picked.scope not in self.page.SCOPES:
            await self.show_page(picked.scope)
        if " " in picked.line:
            self._ask_line(f"{picked.verb} ")
        else:
            await self.run_anywhere(picked)

    @command("app.line", "command line", keys="colon", footer="command")
    def open_line(self) -> None:
        self._ask_line("")

    def _ask_line(self, text: str, hint: str = "") -> None:
        self.query_one(CommandBar).ask(text, hint)

    def on_page_type_line(self, message: Page.TypeLine) -> None:
        self._ask_line(message.text, message.hint)

    async def run_line(self, value: str) -> None:
        self.query_one(CommandBar).lines_typed.add(value)
        self._close_line()
        if is_count(value):
            await self._move_by(value.strip())
            return
        try:
            found, text = parse_line(value, self.scopes())
        except ValueError as error:
            self.state.say(str(error), "bad")
            return
        if found is not None:
            await self.run_anywhere(found, text)

    async def _move_by(self, count: str) -> None:
        """`+5` and `-5` move the cursor by rows; `5` goes to node 5 where there are nodes, else to row 5."""
        rows = self.page.main_list
        goto = by_verb("goto", self.scopes())
        if count[0] in "+-":
            rows.move_to(rows.cursor + int(count))
        elif goto is not None:
            await self.run_anywhere(goto, count)
        else:
            rows.move_to(int(count) - 1)

    @on(LineInput.Cancelled, "#command")
    def _close_line(self) -> None:
        self.state.session.keep_line("")
        self.page.main_widget().focus()

    def complete_line(self, value: str) -> list[str]:
        def arguments(found: Command, text: str) -> list[str]:
            if not found.complete and takes_path(found):
                return complete_path(text)
            return list(group_of(self.owner(found), found).completions(found, text))

        return line_completions(value, self.scopes(), arguments)

    def line_hint(self, value: str) -> Line:
        """What may come next on the `:` line: candidates, else what the command that is typed does."""
        offers = [offer for offer in self.complete_line(value) if offer.strip() != value.strip()] if value else []
        verb, space, _ = value.lstrip().partition(" ")
        found = by_verb(verb, self.scopes()) if verb else None
        only = not space and len(offers) == 1 and found is not None
        return offers_line(offers) if offers and not only else usage_line(found)

    def on_page_yank(self, message: Page.Yank) -> None:
        self.copy(message.copy)

    def copy(self, copy: Copy) -> None:
        """Copy to the terminal's clipboard and to a file."""
        self.state.say(*yank(copy, self.state.workspace.root, self.copy_to_clipboard))
