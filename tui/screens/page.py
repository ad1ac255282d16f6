"""What all screens share: a page fills the space between the bars and owns its commands."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from textual.containers import Container
from textual.events import Key, Resize
from textual.message import Message
from textual.widget import Widget

from layerwise._tool.tui.commands import Command, Commanded, Commands, bind, declare, in_scopes
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.screens.pick import Choice, PickScreen, yank_choices
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.virtual_list import VirtualList

Then = Callable[[object], None] | Callable[[object], Awaitable[None]]


class Page(Container):
    """Base of the screens. Subclass with `scope="name"`; compose the body; declare commands with @command, or give
    `groups`, objects that do. also: scopes of groups that other pages have, too.

    A page reads and changes the shared state and posts messages up; it never reaches for another page.
    """

    SCOPE: ClassVar[str]
    main_list: VirtualList
    SCOPES: ClassVar[tuple[str, ...]]
    groups: Sequence[Commands] = ()
    DEFAULT_CSS = "Page { width: 1fr; height: 1fr; layout: vertical; }"

    @dataclass
    class Open(Message):
        """Show the screen called `name`."""

        name: str

    @dataclass
    class OpenModel(Message):
        """Leave this model for the one at `path`."""

        path: Path

    @dataclass
    class Yank(Message):
        """Copy to the terminal's clipboard and to a file."""

        copy: Copy

    @dataclass
    class TypeLine(Message):
        """Open the `:` line with `text` on it, and `hint` beside it."""

        text: str
        hint: str = ""

    class FooterChanged(Message):
        """`footer_keys` gives others."""

    def __init_subclass__(cls, scope: str, also: tuple[str, ...] = (), **kwargs: Any) -> None:
        cls.SCOPE = scope
        declare(cls, scope)
        bind(cls, (scope, *also))
        super().__init_subclass__(**kwargs)

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(id=f"page-{self.SCOPE}")
        self.state = state
        self.controllers = controllers

    action_run_command = Commanded.action_run_command
    completions = Commands.completions

    @property
    def session(self) -> Session:
        return self.state.session

    def main_widget(self) -> Widget:
        """The widget that has the focus when the page is shown."""
        return self.main_list

    async def take_key(self, event: Key) -> bool:
        """Handle a key before the bindings see it; false leaves it to them."""
        for group in self.groups:
            if await group.take_key(event):
                return True
        return False

    def footer_keys(self) -> list[Command]:
        """Keys that mean something on this page right now only, for footer and help."""
        return [found for group in self.groups for found in group.footer_keys()]

    def footer_commands(self) -> list[Command]:
        """The page's commands in the order in which the footer shows them; those without a word are left out."""
        now = self.footer_keys()
        taken = {found.keys for found in now}
        return [*now, *(found for found in in_scopes((self.SCOPE,)) if not taken.intersection(found.keys.split(",")))]

    def choose(
        self, title: str, choices: Sequence[Choice], then: Then | None = None, *, filterable: bool = False
    ) -> None:
        """Let the user pick a choice, then call `then` with its value, None where none was picked."""
        self.app.push_screen(PickScreen(title, choices, self.state.glyphs, filterable=filterable), then)

    def offer_copies(self, targets: Sequence[Copy]) -> None:
        """Let the user copy one of them."""
        choices = yank_choices(targets)
        if choices:
            self.choose("Copy", choices, self._copied)

    def _copied(self, copy: object) -> None:
        if isinstance(copy, Copy):
            self.post_message(self.Yank(copy))

    def open(self, page: str) -> None:
        """Show the page called `page`."""
        self.post_message(self.Open(page))

    def shown_again(self) -> None:
        """The page came to the front: catch up with the state."""

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        """Paint what has changed: the page has another size, or has it again, which it lacked while hidden."""
