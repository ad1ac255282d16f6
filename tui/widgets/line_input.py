"""A one-line text field whose cursor does not blink: a blinking one costs 24 KB in 10 s over SSH."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.events import Blur, Focus, Key, Paste, Resize
from textual.geometry import Region
from textual.message import Message

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.text import Line, fit, width, wrap_runs
from layerwise._tool.tui.state.line_history import LineHistory
from layerwise._tool.tui.widgets.lines import LineWidget

if TYPE_CHECKING:
    from typing_extensions import Self

LEAST = 40
"""Cells of what was typed that stay on view beside what is told of it."""
MOST = 5
"""Lines that what is told takes, at most."""


class LineInput(LineWidget, can_focus=True):
    """Edits one line. Posts `Changed` at each edit, `Submitted` on enter, `Cancelled` on escape.

    tail: text shown after the field (a count), never cut: it takes room from the field, or lines of its own, which are
    above the field with TOLD_ABOVE. complete: tab puts its next answer for the text so far.
    submit: called (and awaited) on enter in place of the message, so that keys typed ahead find it done.
    history: up and down go through it.
    """

    DEFAULT_CSS = "LineInput { height: 1; }"
    TOLD_ABOVE: ClassVar[bool] = False

    @dataclass
    class _Event(Message):
        input: "LineInput"
        value: str

        @property
        def control(self) -> "LineInput":
            return self.input

    class Changed(_Event):
        """The text is another."""

    class Submitted(_Event):
        """Enter."""

    class Cancelled(_Event):
        """Escape."""

    def __init__(self, prompt: str = "", *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.prompt = prompt
        self.value = ""
        self.position = 0
        self.tail: Line = []
        self.complete: Callable[[str], list[str]] | None = None
        self.submit: Callable[[str], Awaitable[None]] | None = None
        self.history: LineHistory | None = None
        self._offers: list[str] = []
        self._height = 1

    def line(self, y: int) -> Line:
        rows = self.rows(self.size.width)
        return rows[y] if y < len(rows) else []

    def rows(self, cells: int) -> list[Line]:
        """The field and what is told of it: beside it, where a part of the field is left, else on lines of its own."""
        told = width(self.tail)
        room = cells - len(self.prompt) - 2
        if told <= room - min(LEAST, cell_len(shown(self.value))) - 2 * bool(told):
            return [[*self._field(room - told - 2 * bool(told)), ("  ", ""), *self.tail]]
        told_lines = [[(" ", ""), *line] for line in wrap_runs(self.tail, cells - 2)[:MOST]]
        return [*told_lines, self._field(room)] if self.TOLD_ABOVE else [self._field(room), *told_lines]

    def _field(self, room: int) -> Line:
        """The prompt and the text around the cursor; of a text that is too long for `room` cells, the last part."""
        here = self.position
        parts = self.value[:here], self.value[here : here + 1], self.value[here + 1 :]
        before, at, after = (shown(part) for part in parts)
        after = fit(after, min(cell_len(after), max(0, room - cell_len(before) - cell_len(at or " "))), keep="start")
        before = fit(before, min(cell_len(before), max(1, room - cell_len(after))), keep="end")
        middle: Line = [(at or " ", "input-cursor")] if self.has_focus else [(at, "input")]
        return [(self.prompt, "key"), (before, "input"), *middle, (after, "input")]

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> "Self":
        if self.size.width:
            rows = len(self.rows(self.size.width))
            if rows != self._height:
                self._height = rows
                self.styles.height = rows
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def on_resize(self, event: Resize) -> None:
        self.refresh()

    def set_value(self, value: str) -> None:
        """Replace the text without posting `Changed`."""
        self.value = value
        self.position = len(value)
        self._offers = []
        self.refresh()

    def set_tail(self, tail: Line) -> None:
        if tail != self.tail:
            self.tail = tail
            self.refresh()

    def cancel(self) -> None:
        """As escape does."""
        self.post_message(self.Cancelled(self, self.value))

    def on_focus(self, event: Focus) -> None:
        self.refresh()

    def on_blur(self, event: Blur) -> None:
        self.refresh()

    def on_paste(self, event: Paste) -> None:
        event.stop()
        self._insert(event.text.splitlines()[0] if event.text else "")

    async def take_key(self, event: Key) -> bool:
        """Edit by a key; false when it means nothing here."""
        edit = self._EDITS.get(event.key)
        if event.key == "enter" and self.submit is not None:
            await self.submit(self.value)
        elif edit is not None:
            edit(self)
        elif event.key in ("up", "down") and self.history is not None:
            self._recall(self.history.older(self.value) if event.key == "up" else self.history.newer())
        elif event.is_printable and event.character:
            self._insert(event.character)
        else:
            return False
        return True

    def _recall(self, line: str | None) -> None:
        if line is not None:
            self._edit(line, len(line))

    def _insert(self, text: str) -> None:
        here = self.position
        self._edit(self.value[:here] + text + self.value[here:], here + len(text))

    def _edit(self, value: str, position: int) -> None:
        changed = value != self.value
        self.value, self.position = value, max(0, min(position, len(value)))
        self._offers = []
        self.refresh()
        if changed:
            self.post_message(self.Changed(self, value))

    def _backspace(self) -> None:
        here = self.position
        if here:
            self._edit(self.value[: here - 1] + self.value[here:], here - 1)

    def _delete(self) -> None:
        self._edit(self.value[: self.position] + self.value[self.position + 1 :], self.position)

    def _delete_word(self) -> None:
        kept = self.value[: self.position].rstrip()
        kept = kept[: kept.rfind(" ") + 1]
        self._edit(kept + self.value[self.position :], len(kept))

    def _complete(self) -> None:
        if self.complete is None:
            return
        offers = self._offers or self.complete(self.value)
        if offers:
            value, *rest = offers
            self._edit(value, len(value))
            self._offers = [*rest, value]

    _EDITS: dict[str, Callable[["LineInput"], object]] = {
        "backspace": _backspace,
        "delete": _delete,
        "ctrl+w": _delete_word,
        "ctrl+u": lambda self: self._edit("", 0),
        "left": lambda self: self._edit(self.value, self.position - 1),
        "right": lambda self: self._edit(self.value, self.position + 1),
        "home": lambda self: self._edit(self.value, 0),
        "end": lambda self: self._edit(self.value, len(self.value)),
        "tab": _complete,
        "enter": lambda self: self.post_message(self.Submitted(self, self.value)),
        "escape": lambda self: self.cancel(),
    }
