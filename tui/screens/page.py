"""What all screens share: a page fills the space between the bars and owns its commands."""

from collections.abc import Sequence
from pathlib import Path

from textual.containers import Container
from textual.events import Key
from textual.message import Message
from textual.widget import Widget

from layerwise._tool.tui.commands import Command, Commanded, in_scopes
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.screens.pick import PickScreen, yank_choices
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import Following


class Page(Commanded, Following, Container):
    """Base of the screens. Subclass with `scope="name"`; compose the body; declare commands with @command.

    A page reads and changes the shared state and posts messages up; it never reaches for another page.
    """

    DEFAULT_CSS = "Page { width: 1fr; height: 1fr; layout: vertical; }"

    class Open(Message):
        """Show the screen called `name`."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

    class OpenModel(Message):
        """Leave this model for the one at `path`."""

        def __init__(self, path: Path) -> None:
            super().__init__()
            self.path = path

    class Yank(Message):
        """Copy to the terminal's clipboard and to a file."""

        def __init__(self, copy: Copy) -> None:
            super().__init__()
            self.copy = copy

    class TypeLine(Message):
        """Open the `:` line with `text` on it, and `hint` beside it."""

        def __init__(self, text: str, hint: str = "") -> None:
            super().__init__()
            self.text = text
            self.hint = hint

    class FooterChanged(Message):
        """`footer_keys` gives others."""

    def __init__(self, state: AppState) -> None:
        super().__init__(id=f"page-{self.SCOPE}")
        self.state = state

    @property
    def session(self) -> Session:
        return self.state.session

    def main_widget(self) -> Widget:
        """The widget that has the focus when the page is shown."""
        raise NotImplementedError

    async def take_key(self, event: Key) -> bool:
        """Handle a key before the bindings see it; false leaves it to them."""
        return False

    def footer_keys(self) -> list[Command]:
        """Keys that mean something on this page right now only, for footer and help."""
        return []

    def footer_commands(self) -> list[Command]:
        """The page's commands in the order in which the footer shows them; those without a word are left out."""
        now = self.footer_keys()
        taken = {found.keys for found in now}
        return [*now, *(found for found in in_scopes((self.SCOPE,)) if not taken.intersection(found.keys.split(",")))]

    def offer_copies(self, targets: Sequence[Copy]) -> None:
        """Let the user copy one of them."""
        choices = yank_choices(targets)
        if choices:
            self.app.push_screen(PickScreen("Copy", choices, self.state.glyphs), self._copied)

    def _copied(self, copy: object) -> None:
        if isinstance(copy, Copy):
            self.post_message(self.Yank(copy))

    def shown_again(self) -> None:
        """The page came to the front: catch up with the state."""

    def laid_out(self) -> None:
        """The page that came to the front has its size again, which it lacked while hidden: paint what has changed."""
