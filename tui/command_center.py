"""The app's side of commands: keys, help, palette and the `:` line, and who runs what."""

from textual import on
from textual.dom import DOMNode
from textual.events import Key
from textual.widget import Widget

from layerwise._tool.tui.commands import (
    Command,
    Commanded,
    by_verb,
    command,
    group_of,
    in_scopes,
    is_count,
    line_completions,
    parse_line,
    run_command,
    scopes_of,
    takes_path,
)
from layerwise._tool.tui.controllers.slow_line import SlowLine
from layerwise._tool.tui.controllers.yank import Copy, block_copy, yank
from layerwise._tool.tui.keyed_app import KeyedApp
from layerwise._tool.tui.lifetime import stays
from layerwise._tool.tui.presenters.bars import candidates_line, command_rows, usage_line
from layerwise._tool.tui.presenters.messages import message_lines
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.chooser import Choice, PickScreen, chooser_cells
from layerwise._tool.tui.screens.key_sequence import KeySequence
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.files import complete_path
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.bars import CommandBar
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import DetailPane
from layerwise._tool.tui.widgets.virtual_list import VirtualList


class CommandCenter(Commanded, KeyedApp, scope="global"):
    """Base of the app. Its pages, which is in front, and the line to the terminal are the subclass's matter."""

    slow_line: SlowLine

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self.keys_of_user: dict[str, list[str]] = {}
        self._sequence = KeySequence(self, state, self.scopes, self.run_anywhere)
        self._asked_from: Widget | None = None

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

    # ── keys ──

    async def act_on_key(self, event: Key) -> None:
        """A key that means nothing here is dropped."""
        self.state.key_pressed()
        self.slow_line.key()
        if event.key == "ctrl+c" and self._leave_line():
            return
        writes = self.screen.is_modal or bool(self._sequence) or isinstance(self.focused, LineInput)
        if event.key == "escape" and not writes and self.page.leave_pane():
            return
        for taker in (self.focused, self.screen):
            if isinstance(taker, LineInput | PickScreen) and await taker.take_key(event):
                return
        if self.screen.is_modal or not await self._take_on_page(event):
            await self._check_bindings(event.key)

    async def _take_on_page(self, event: Key) -> bool:
        return (
            await self._sequence.take(event.key)
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

    def _leave_line(self) -> bool:
        """Leave the line that is written on, the list to choose from, or a command of several keys, if there is one."""
        if isinstance(self.screen, PickScreen):
            self.screen.action_dismiss_pick()
        elif isinstance(self.focused, LineInput):
            self.focused.cancel()
        elif self._sequence:
            self._sequence.leave()
        else:
            return False
        return True

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
        rows = command_rows(commands, chooser_cells(self.size.width))
        choices = [Choice(line, found, more=more) for (line, *more), found in zip(rows, commands, strict=True)]
        self.push_screen(PickScreen(title, choices, self.state.glyphs, filterable=True), self._run_picked)

    async def _run_picked(self, picked: object) -> None:
        if not isinstance(picked, Command):
            return
        if picked.scope in self.page_names() and picked.scope not in self.page.SCOPES:
            await self.show_page(picked.scope)
        if picked.takes_argument:
            self._ask_line(f"{picked.verb} ")
        else:
            await self.run_anywhere(picked)

    @command("app.messages", "all that was said, in full; enter copies a message", line="messages")
    def show_messages(self) -> None:
        cells = chooser_cells(self.size.width)
        said = [(message, message_lines(message, cells)) for message in self.state.messages.newest_first()]
        choices = [Choice(line, message.text, more=more) for message, (line, *more) in said]
        if not choices:
            self.state.say("nothing was said yet")
            return
        screen = PickScreen("Messages, the newest first (enter copies, esc closes)", choices, self.state.glyphs)
        self.push_screen(screen, self._copy_message)

    def _copy_message(self, text: object) -> None:
        if isinstance(text, str):
            self.on_page_yank(Page.Yank(block_copy("m", "message", text)))

    @command("app.line", "command line", keys="colon", footer="command")
    def open_line(self) -> None:
        self._ask_line("")

    def _ask_line(self, text: str, hint: str = "") -> None:
        self._asked_from = self.focused
        self.query_one(CommandBar).ask(text, hint)

    def on_page_type_line(self, message: Page.TypeLine) -> None:
        self._ask_line(message.text, message.hint)

    async def run_line(self, value: str) -> None:
        """Run what was typed; what is not possible is said, and stays on the line."""
        bar = self.query_one(CommandBar)
        bar.lines_typed.add(value)
        if is_count(value):
            self._close_line()
            await self._move_by(value.strip())
            return
        try:
            found, text = parse_line(value, self._line_scopes())
        except ValueError as error:
            self.state.say(str(error), "bad")
            bar.ask(value)
            return
        self._close_line()
        if found is not None:
            await self.run_anywhere(found, text)

    async def _move_by(self, count: str) -> None:
        """`+5` and `-5` move the cursor by rows; `5` goes to node 5 where there are nodes, else to row 5."""
        main = self.page.main_widget()
        rows = main if isinstance(main, VirtualList | DetailPane) else self.page.main_list
        goto = by_verb("goto", self.scopes())
        if count[0] in "+-":
            rows.move_times("down" if count[0] == "+" else "up", int(count[1:]))
        elif goto is not None:
            await self.run_anywhere(goto, count)
        else:
            rows.move_times("top", int(count))

    @on(LineInput.Cancelled, "#command")
    def _close_line(self) -> None:
        self.state.session.close_line()
        self._after_line().focus()

    def _after_line(self) -> Widget:
        """What has the focus once the `:` line is left."""
        was = self._asked_from
        again = was is not None and stays(was) and was.size.height and self.page in was.ancestors
        return was if was is not None and again else self.page.main_widget()

    def _line_scopes(self) -> tuple[str, ...]:
        """Where a command that is typed may come from."""
        return (*self.page.SCOPES, *scopes_of(self._after_line()), "global")

    def complete_line(self, value: str) -> list[str]:
        def arguments(found: Command, text: str) -> list[str]:
            if not found.complete and takes_path(found):
                return complete_path(text)
            return list(group_of(self.owner(found), found).completions(found, text))

        return line_completions(value, self._line_scopes(), arguments)

    def line_hint(self, value: str) -> Line:
        """What may come next on the `:` line: candidates, else what the command does, or why there is none."""
        if not value.strip() or is_count(f"{value}0"):
            return []
        offers = [offer for offer in self.complete_line(value) if offer.strip() != value.strip()]
        try:
            found, problem = parse_line(value, self._line_scopes())[0], ""
        except ValueError as error:
            found, problem = None, str(error)
        only = " " not in value.lstrip() and len(offers) == 1 and found is not None
        if offers and not only:
            return candidates_line(offers)
        return [(problem, "bad")] if found is None else usage_line(found)

    def on_page_yank(self, message: Page.Yank) -> None:
        self.copy(message.copy)

    def copy(self, copy: Copy) -> None:
        """Copy to the terminal's clipboard and to a file."""
        self.state.say(*yank(copy, self.state.workspace.root, self.copy_to_clipboard))
