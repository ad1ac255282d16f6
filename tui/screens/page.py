"""What all screens share: a page between the bars, which owns its commands."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from textual.containers import Container
from textual.events import Key, Resize
from textual.message import Message
from textual.widget import Widget

from layerwise._tool.tui.commands import Command, Commanded, Commands, bind, command, declare, in_scopes
from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.screens.chooser import Choice, PickScreen, yank_choices
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.typed.settling import Settling
from layerwise._tool.tui.widgets.lines import DetailPane
from layerwise._tool.tui.widgets.virtual_list import VirtualList


def turns_pane(id: str, title: str, footer: str = "") -> Callable[["Page"], None]:
    """The command of a page with a pane of text that goes to the pane, or back."""

    def turn(self: "Page") -> None:
        pane = self.query_one(DetailPane)
        (self.main_widget() if pane.has_focus else pane).focus()

    return command(id, title, keys="tab", footer=footer)(turn)


def _first_keys(found: Command) -> set[str]:
    """The first key of each way to press a command."""
    return {key.split()[0] for key in found.keys.split(",") if key}


def node_and_tensor(session: Session) -> tuple[str, str]:
    """Names of a session's selected node and of its first output; "" where there is none."""
    index = session.index
    if index is None or not 0 <= session.node < index.n_nodes:
        return "", ""
    made = [tensor for tensor in index.node_outputs(session.node) if tensor >= 0]
    return index.node_name(session.node), index.tensor_name(made[0]) if made else ""


Then = Callable[[Any], object]


class Page(Container):
    """Base of the screens. Subclass with `scope="name"`; compose the body; declare commands with @command, or give
    `groups`, objects that do. also: scopes of groups that other pages have, too.

    A page reads and changes the shared state and posts messages up; it never reaches for another page.
    """

    SCOPE: ClassVar[str]
    main_list: VirtualList
    SCOPES: ClassVar[tuple[str, ...]]
    groups: Sequence[Commands] = ()
    came_from = ""
    """The page that was in front before."""
    DEFAULT_CSS = "Page { width: 1fr; height: 1fr; layout: vertical; }"

    @dataclass
    class Open(Message):
        """Show the screen called `name`."""

        name: str

    @dataclass
    class OpenModel(Message):
        """Leave this model for the one at `path`."""

        path: Path

    class Demo(Message):
        """Leave this model for the demo."""

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

    async def _on_message(self, message: Message) -> None:
        settling: Settling | None = getattr(self.app, "settling", None)
        with settling.at_work() if settling is not None else nullcontext():
            await super()._on_message(message)

    @property
    def session(self) -> Session:
        return self.state.session

    def in_hand(self) -> tuple[str, str]:
        """Names of the node and of the tensor that the page is about now, "" for none: the selected node's."""
        return node_and_tensor(self.session)

    def main_widget(self) -> Widget:
        """The widget that has the focus when the page is shown."""
        return self.main_list

    def leave_pane(self) -> bool:
        """Go back from a pane that is read to what the page is about; false where one is there."""
        reads = isinstance(self.screen.focused, DetailPane) and self.screen.focused is not self.main_widget()
        if reads:
            self.main_widget().focus()
        return reads

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
        own = (found for found in in_scopes((self.SCOPE,)) if not taken.intersection(_first_keys(found)))
        return [*now, *own]

    def choose(
        self, title: str, choices: Sequence[Choice], then: Then | None = None, *, filterable: bool = False
    ) -> None:
        """Let the user pick a choice, then call `then` with its value (and await what it gives) unless that is None."""

        def picked(value: object) -> Any:
            return then(value) if then is not None and value is not None else None

        self.app.push_screen(PickScreen(title, choices, self.state.glyphs, filterable=filterable), picked)

    def offer_copies(self, targets: Sequence[Copy]) -> None:
        """Let the user copy one of them."""
        choices = yank_choices(targets)
        if choices:
            self.choose("Copy", choices, lambda copy: self.post_message(self.Yank(copy)))

    def open(self, page: str) -> None:
        """Show the page called `page`."""
        self.post_message(self.Open(page))

    def shown_again(self) -> None:
        """The page came to the front: catch up with the state."""

    def on_mount(self) -> None:
        view = self.session.view(self.SCOPE)
        if view is not None and hasattr(self, "main_list"):
            self.main_list.come_back(*view)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        if event.list is getattr(self, "main_list", None):
            self.session.keep_view(self.SCOPE, event.list.top, event.list.cursor)

    def on_resize(self, event: Resize) -> None:
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        """Paint what has changed: the page has another size, or has it again, which it lacked while hidden."""
