"""An app that handles what is typed in its order: each key once all is done that those before it asked for."""

import asyncio

from textual.app import App
from textual.events import Event, Key, MouseEvent, MouseMove, Paste
from textual.message import Message

from layerwise._tool.backends.text import counted
from layerwise._tool.tui.commands import in_scopes
from layerwise._tool.tui.lifetime import while_it_stays
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.typed.driver import KeyDriver
from layerwise._tool.tui.typed.queue import KeyQueue
from layerwise._tool.tui.typed.settling import MOVING, WRITING, Settling, Waits
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.virtual_list import VirtualList

_GIVES_UP = ("escape", "ctrl+c", "ctrl+q")
_TYPED_AHEAD = "ctrl+j"  # what a terminal makes of enter before the app has told it not to


class KeyedApp(App[None]):
    """What a key does is the subclass's matter.

    Textual hands a key to the widget in focus and comes back to the bindings later: of keys typed ahead (`/relu`),
    those after the first would still go to the old focus.
    """

    def __init__(self, state: AppState) -> None:
        super().__init__(driver_class=KeyDriver)
        self.state = state
        self.settling = Settling(self)
        self.keys = KeyQueue(self.settling, self._ready_for, self._take)
        self._key_task: asyncio.Task[None] | None = None

    async def act_on_key(self, event: Key) -> None:
        """Handle a key before the next one is looked at."""
        raise NotImplementedError

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
            self.state.say(f"{counted(lost, 'key')} typed ahead forgotten", "warn")
        else:
            self.keys.put(event)

    async def _take(self, event: Event) -> None:
        """Handle one thing that was typed."""
        with while_it_stays(self):
            if not isinstance(event, Key):
                await super().on_event(event)
                return
            await self.act_on_key(event)

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
