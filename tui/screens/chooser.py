"""A list to choose from, which lies over the page."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.events import Key, Resize
from textual.message import Message
from textual.reactive import Reactive
from textual.screen import ModalScreen
from textual.widget import Widget

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.controllers.yank import Copy
from layerwise._tool.tui.presenters.text import ASCII, Glyphs, Line, plain, wrap_runs
from layerwise._tool.tui.widgets.entry_list import EntryList
from layerwise._tool.tui.widgets.line_input import LineInput
from layerwise._tool.tui.widgets.lines import LinesView
from layerwise._tool.tui.widgets.paced import PacedScreen
from layerwise._tool.tui.widgets.virtual_list import GUTTER, VirtualList


@dataclass(frozen=True)
class Choice:
    """One row of a chooser: its value comes back when it is picked; `key` picks it at once.

    more: rows that go on. words: what a filter finds it by, besides what is shown.
    """

    line: Line
    value: object
    key: str = ""
    more: Sequence[Line] = ()
    words: str = ""

    @property
    def lines(self) -> list[Line]:
        return [self.line, *self.more]


WIDEST = 110


def chooser_cells(columns: int) -> int:
    """Cells of a row of a chooser in a terminal of so many columns."""
    return max(20, min(WIDEST, columns) - 2 - GUTTER)


class PickScreen(PacedScreen[object], ModalScreen[object], inherit_bindings=False):
    """Shows choices; returns the value of the picked one, or None.

    With `filterable` the text typed narrows the rows (every word must occur), and arrows move.
    Without, single keys of the choices and the keys of a list apply.
    """

    class Ready(Message):
        """The screen stands; closing it any earlier would leave Textual waiting for ever."""

    DEFAULT_CSS = """
    PickScreen { align: center middle; background: $background; }
    PickScreen > Vertical { width: 100%; max-width: 110; height: auto; max-height: 95%; border: solid $primary; }
    PickScreen > .ascii { border: ascii $primary; }
    PickScreen VirtualList { height: auto; }
    """
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    BINDINGS = [("escape", "dismiss_pick"), ("q", "dismiss_pick")]

    def __init__(self, title: str, choices: Sequence[Choice], glyphs: Glyphs, *, filterable: bool = False) -> None:
        super().__init__()
        self._title = title
        self._answered = False  # not _closed: that one is Textual's, and it would never remove the screen
        self.ready = False
        self._glyphs = glyphs
        self._choices = choices
        self._filterable = filterable
        self._input = LineInput("/ ")
        self._list = EntryList(glyphs)
        self._heading = LinesView(role="title")
        self._shown: list[tuple[Choice, list[Line]]] = []
        self._lay_out()

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.set_class(self._glyphs is ASCII, "ascii")
            yield self._heading
            if self._filterable:
                yield self._input
            yield self._list

    def _lay_out(self) -> None:
        """Break title and rows into lines of the width that there is, and give the list the height that is left."""
        columns, height = self.app.size
        at = self._shown[self._list.entry][0] if self._shown else None
        cells = chooser_cells(columns)
        self._all = [
            (choice, [part for line in choice.lines for part in _whole(line, cells)]) for choice in self._choices
        ]
        title = [[(" ", "title"), *line] for line in wrap_runs([(self._title, "title")], cells)]
        self._heading.set_lines(title)
        self._heading.styles.height = len(title)
        self._show(next((place for place, (choice, _) in enumerate(self._shown) if choice is at), 0))
        lines = sum(len(lines) for _, lines in self._all)
        self._list.styles.height = max(1, min(lines, max(3, height - 7 - len(title))))

    def on_resize(self, event: Resize) -> None:
        self._lay_out()

    def on_mount(self) -> None:
        self.call_after_refresh(self._announce)
        (self._input if self._filterable else self._list).focus()

    def _announce(self) -> None:
        self.ready = True
        self.app.post_message(self.Ready())

    def on_line_input_changed(self, event: LineInput.Changed) -> None:
        self._show()

    def _show(self, at: int = 0) -> None:
        """The choices in which all words of the filter occur, with the cursor on that at the place `at`."""
        words = self._input.value.lower().split()
        texts = ((found, " ".join([*map(plain, found[0].lines), found[0].words]).lower()) for found in self._all)
        self._shown = [found for found, text in texts if all(word in text for word in words)]
        self._list.set_entries([lines for _, lines in self._shown], at)

    def on_line_input_submitted(self, event: LineInput.Submitted) -> None:
        self._pick()

    def on_line_input_cancelled(self, event: LineInput.Cancelled) -> None:
        self._close(None)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        self._pick()

    async def take_key(self, event: Key) -> bool:
        """Keys of the choices, or typing and moving while the rows are filtered; false for all others."""
        if self._answered:
            return True
        if self._filterable:
            moves = {"down": self._list.down, "up": self._list.up, "pagedown": self._list.page_down,
                     "pageup": self._list.page_up}  # fmt: skip
            move = moves.get(event.key)
            if move is not None:
                move()
            return move is not None or await self._input.take_key(event)
        picked = [choice for choice, _ in self._shown if choice.key and choice.key == event.character]
        if picked:
            self._close(picked[0].value)
        return bool(picked)

    def _pick(self) -> None:
        if self._shown:
            self._close(self._shown[self._list.entry][0].value)

    def _close(self, value: object) -> None:
        if not self._answered:  # the key may come twice before the screen is gone
            self._answered = True
            self.dismiss(value)

    def action_dismiss_pick(self) -> None:
        self._close(None)


def _whole(line: Line, cells: int) -> list[Line]:
    """A row over as many lines as it takes, later ones below its last column."""
    if cell_len(plain(line)) <= cells:
        return [line]
    columns = sum(cell_len(text) for text, _ in line[:-1])
    return wrap_runs(line, cells, indent=min(columns, cells * 2 // 3))


def yank_choices(targets: Sequence[Copy]) -> list[Choice]:
    """Rows of a copy menu; what is picked comes back."""
    return [
        Choice([(f"{copy.key}  ", "key"), (f"{copy.what:<14} ", "dim"), (shown(copy.line, 200), "")], copy, copy.key)
        for copy in targets
    ]
