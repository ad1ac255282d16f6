"""The bars around a page: title, tabs, message and footer. One line each, painted only when their text changes."""

from collections.abc import Callable, Sequence

from textual.events import Blur, Resize

from layerwise._tool.tui.commands import Command
from layerwise._tool.tui.presenters.bars import footer_line, tab_line, title_line
from layerwise._tool.tui.presenters.messages import bar_line
from layerwise._tool.tui.presenters.surgery import title_text
from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.state.line_history import LineHistory
from layerwise._tool.tui.state.shared import AppState
from layerwise._tool.tui.widgets.following import follow
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import OneLine


class TitleBar(OneLine):
    """Model and running jobs; follows the session and the status."""

    def __init__(self, state: AppState) -> None:
        super().__init__(id="title", role="tab")
        self._state = state

    def on_mount(self) -> None:
        follow(self, self._state.session.on_index, self.update_text)
        follow(self, self._state.on_status, self.update_text)
        follow(self, self._state.surgery.on_change, self.update_text)

    def on_resize(self, event: Resize) -> None:
        self.update_text()

    def update_text(self) -> None:
        session, surgery = self._state.session, self._state.surgery
        edited = title_text(surgery, self.size.width) if surgery.edits else ""
        self.set_line(title_line(session.model, session.index, self._state.status, self.size.width, edited))


class TabBar(OneLine):
    """The pages, and which of them is in front."""

    def __init__(self) -> None:
        super().__init__(id="tabs", role="tab")
        self._current = ""

    def show(self, page: str) -> None:
        self._current = page
        self.set_line(tab_line(page, self.size.width))

    def on_resize(self, event: Resize) -> None:
        self.show(self._current)


class CommandBar(LineInput):
    """The line above the footer: the last thing the app said, and the `:` line while it has the focus."""

    TOLD_ABOVE = True

    def __init__(self, state: AppState) -> None:
        super().__init__(":", id="command")
        self._state = state
        self.hint: Callable[[str], Line] = lambda value: []
        self.lines_typed = self.history = LineHistory(state.workspace.root / "lines.json")

    def on_mount(self) -> None:
        follow(self, self._state.on_message, self.refresh)

    def rows(self, cells: int) -> list[Line]:
        if self.has_focus:
            return super().rows(cells)
        return [[(" ", ""), *bar_line(self._state.messages.on_view, max(1, cells - 1), self._state.glyphs)]]

    def ask(self, text: str, hint: str = "") -> None:
        """Take the focus with `text` on the line, and `hint` after it."""
        self.set_value(text)
        self.lines_typed.rest()
        self.set_tail([(hint, "dim")] if hint else self.hint(text))
        self._state.session.keep_line(text)
        self.focus()

    def on_blur(self, event: Blur) -> None:
        if self.screen.focused not in (None, self):  # None: the terminal is not looked at, and the line stays
            self._state.session.close_line()

    def _edit(self, value: str, position: int) -> None:
        changed = value != self.value
        super()._edit(value, position)
        if changed:
            self.set_tail(self.hint(value))
            self._state.session.keep_line(value)


class Footer(OneLine):
    """The keys that matter now."""

    def __init__(self) -> None:
        super().__init__(id="footer", role="tab")
        self._commands: Sequence[Command] = ()

    def show(self, commands: Sequence[Command]) -> None:
        self._commands = commands
        self.set_line(footer_line(commands, self.size.width))

    def show_again(self) -> None:
        """The keys that were shown before something else was."""
        self.show(self._commands)

    def on_resize(self, event: Resize) -> None:
        self.show_again()
