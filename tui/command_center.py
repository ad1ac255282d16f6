"""The app's side of commands: keys, help, palette and the `:` line, and who runs what."""

import asyncio
from collections.abc import Mapping

from textual import on
from textual.app import App
from textual.dom import DOMNode
from textual.events import Event, Key, MouseEvent, MouseMove, Paste
from textual.message import Message
from textual.widget import Widget

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
from layerwise._tool.tui.controllers.slow_line import SlowLine
from layerwise._tool.tui.controllers.yank import Copy, block_copy, yank
from layerwise._tool.tui.lifetime import stays, while_it_stays
from layerwise._tool.tui.presenters.bars import candidates_line, command_rows, offers_lines, usage_line
from layerwise._tool.tui.presenters.messages import message_lines
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.screens.page import Choice, Page, PickScreen, chooser_cells
from layerwise._tool.tui.state.files import complete_path
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.typed.driver import KeyDriver
from layerwise._tool.tui.typed.queue import KeyQueue
from layerwise._tool.tui.typed.settling import MOVING, WRITING, Settling, Waits
from layerwise._tool.tui.widgets.bars import CommandBar, Footer
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import DetailPane
from layerwise._tool.tui.widgets.virtual_list import VirtualList

_GIVES_UP = ("escape", "ctrl+c", "ctrl+q")
OFFERED = 0.1
"""Seconds that what may follow a key stays on view once its command runs."""
_TYPED_AHEAD = "ctrl+j"  # what a terminal makes of enter before the app has told it not to


class CommandCenter(Commanded, App[None], scope="global"):
    """Base of the app. Its pages, which is in front, and the line to the terminal are the subclass's matter."""

    slow_line: SlowLine

    def __init__(self, state: AppState) -> None:
        super().__init__(driver_class=KeyDriver)
        self.state = state
        self.settling = Settling(self)
        self.keys = KeyQueue(self.settling, self._ready_for, self._take)
        self._key_task: asyncio.Task[None] | None = None
        self.keys_of_user: dict[str, list[str]] = {}
        self._begun = ""
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

    # ── what is typed, in its order ──

    def take_keys(self) -> None:
        """Handle keys from now on; those that came before wait for this."""
        self._key_task = asyncio.create_task(self._handle_keys())

    def take_no_more_keys(self) -> None:
        if self._key_task is not None:
            self._key_task.cancel()

    async def _handle_keys(self) -> None:
        try:
            await self.keys.run()
        except Exception as error:  # as Textual does with what goes wrong in a handler
            self._handle_exception(error)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            at_start = isinstance(event, Key) and event.key == _TYPED_AHEAD
            self._typed(Key("enter", "\r") if at_start else event)
        elif isinstance(event, MouseEvent) and not (isinstance(event, MouseMove) or self.keys.is_idle):
            self.keys.put(event)
        else:
            with self.settling.at_work():
                await super().on_event(event)

    async def _on_message(self, message: Message) -> None:
        with self.settling.at_work():
            await super()._on_message(message)

    async def _flush_next_callbacks(self) -> None:
        with self.settling.at_work():
            await super()._flush_next_callbacks()

    def _typed(self, event: Key | Paste) -> None:
        if isinstance(event, Key) and event.key in _GIVES_UP and self.gives_up():
            self.keys.rest()
            return
        lost = self.keys.give_up(event)
        if lost:
            self.state.say(f"{lost} keys typed ahead are forgotten", "warn")
        else:
            self.keys.put(event)

    async def _take(self, event: Event) -> None:
        """Handle one thing that was typed."""
        with while_it_stays(self):
            if not isinstance(event, Key):
                await super().on_event(event)
                return
            await self._take_key(event)

    async def _ready_for(self, event: Event) -> None:
        """Wait until all is done that a key acts on."""
        with while_it_stays(self):
            await self.settling.settled(WRITING)
            without = self._not_needed(event)
            if not without:
                self.state.owed.flush()
            if without != WRITING:
                await self.settling.settled(without)

    def _not_needed(self, event: Event) -> frozenset[Waits]:
        """What a key does not wait for that only writes on, or moves on in a list."""
        if not isinstance(event, Key):
            return frozenset()
        if isinstance(self.focused, LineInput):
            return WRITING if event.is_printable else frozenset()
        moves = in_scopes(("list",)) if isinstance(self.focused, VirtualList) else []
        moving = any(event.key in found.keys.split(",") for found in moves if found.id != "list.select")
        return MOVING if moving else frozenset()

    def gives_up(self) -> bool:
        """Give up what keys wait for, if a person may; the keys are for what comes, and forgotten with it."""
        return False

    async def _take_key(self, event: Key) -> None:
        """Handle a key before the next one is looked at; one that means nothing here is dropped.

        Textual hands a key to the widget in focus and comes back to the bindings later: of keys typed ahead
        (`/relu`), those after the first would still go to the old focus.
        """
        self.state.key_pressed()
        self.slow_line.key()
        if event.key == "ctrl+c" and self._leave_line():
            return
        writes = self.screen.is_modal or bool(self._begun) or isinstance(self.focused, LineInput)
        if event.key == "escape" and not writes and self.page.leave_pane():
            return
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

    def _leave_line(self) -> bool:
        """Leave the line that is written on, the list to choose from, or a command of several keys, if there is one."""
        if isinstance(self.screen, PickScreen):
            self.screen.action_dismiss_pick()
        elif isinstance(self.focused, LineInput):
            self.focused.cancel()
        elif self._begun:
            self._begin("")
            self.state.say("")
        else:
            return False
        return True

    async def _take_sequence(self, key: str) -> bool:
        """Whether the key begins, goes on with or ends a command of several keys; escape gives one up."""
        begun = self._begun
        typed = f"{begun} {key}".strip()
        found = going_on(typed, self.scopes())
        if "" in found:
            await self._end_sequence(found[""])
            return True
        self._begin("")
        if found:
            self._begin(typed, found)
        elif begun:
            self.state.say("")
        return bool(found) or (bool(begun) and key == "escape")

    async def _end_sequence(self, found: Command) -> None:
        """Run what several keys mean; what was offered goes with the frame that shows it, or soon if that is late."""
        self._begun = ""
        offered = self.state.messages.on_view

        def put_away() -> None:
            if self._begun or not stays(self):
                return
            if self.state.messages.on_view is offered:
                self.state.say("")
            for footer in self.screen_stack[0].query(Footer):
                footer.show_again()

        late = asyncio.get_running_loop().call_later(OFFERED, put_away)
        try:
            await self.run_anywhere(found)
        finally:
            late.cancel()
            put_away()

    def _begin(self, typed: str, found: Mapping[str, Command] | None = None) -> None:
        """A command of several keys has begun with `typed`, or none: what may follow is in the footer and above it."""
        if typed == self._begun == "":
            return
        self._begun = typed
        offers = [(key_name(rest), command) for rest, command in (found or {}).items()]
        if offers:
            title, rest = offers_lines("".join(map(key_name, typed.split())), offers, self.size.width)
            self.state.say(title)
            self.query_one(Footer).set_line(rest)
        else:
            self.query_one(Footer).show_again()

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
        if " " in picked.line:
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
        self.state.session.keep_line("")
        was = self._asked_from
        again = was is not None and stays(was) and was.size.height and self.page in was.ancestors
        (was if was is not None and again else self.page.main_widget()).focus()

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
        return candidates_line(offers) if offers and not only else usage_line(found)

    def on_page_yank(self, message: Page.Yank) -> None:
        self.copy(message.copy)

    def copy(self, copy: Copy) -> None:
        """Copy to the terminal's clipboard and to a file."""
        self.state.say(*yank(copy, self.state.workspace.root, self.copy_to_clipboard))
