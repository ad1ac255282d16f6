"""Commands of several keys: what was typed of one, and what may follow it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from textual.app import App

from layerwise._tool.tui.commands import Command, going_on, key_name
from layerwise._tool.tui.lifetime import stays
from layerwise._tool.tui.presenters.bars import offers_lines
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.bars import Footer

OFFERED = 0.1
"""Seconds that what may follow a key stays on view once its command runs."""


class KeySequence:
    """The command of several keys that has begun, if one has. scopes: of what keys reach now; run: runs a command."""

    def __init__(
        self, app: App[None], state: AppState, scopes: Callable[[], tuple[str, ...]],
        run: Callable[[Command], Awaitable[None]],
    ) -> None:  # fmt: skip
        self._app, self._state, self._scopes, self._run = app, state, scopes, run
        self._begun = ""

    def __bool__(self) -> bool:
        """Whether one has begun."""
        return bool(self._begun)

    async def take(self, key: str) -> bool:
        """Whether the key begins, goes on with or ends a command of several keys; escape gives one up."""
        begun = self._begun
        typed = f"{begun} {key}".strip()
        found = going_on(typed, self._scopes())
        if "" in found:
            await self._end(found[""])
            return True
        self._begin("")
        if found:
            self._begin(typed, found)
        elif begun:
            self._state.say("")
        return bool(found) or (bool(begun) and key == "escape")

    def leave(self) -> None:
        """Give up the one that has begun."""
        self._begin("")
        self._state.say("")

    async def _end(self, found: Command) -> None:
        """Run what several keys mean; what was offered goes with the frame that shows it, or soon if that is late."""
        self._begun = ""
        offered = self._state.messages.on_view

        def put_away() -> None:
            if self._begun or not stays(self._app):
                return
            if self._state.messages.on_view is offered:
                self._state.say("")
            for footer in self._app.screen_stack[0].query(Footer):
                footer.show_again()

        late = asyncio.get_running_loop().call_later(OFFERED, put_away)
        try:
            await self._run(found)
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
            title, rest = offers_lines("".join(map(key_name, typed.split())), offers, self._app.size.width)
            self._state.prompt(title)
            self._app.query_one(Footer).set_line(rest)
        else:
            self._app.query_one(Footer).show_again()
