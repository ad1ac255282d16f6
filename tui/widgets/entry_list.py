"""A list whose entries take one line or more each: the cursor goes from entry to entry."""

from bisect import bisect_right
from collections.abc import Sequence

from layerwise._tool.tui.presenters.text import Glyphs, Line
from layerwise._tool.tui.widgets.virtual_list import FixedRows, VirtualList


class EntryList(VirtualList):
    """The cursor stands on the first line of an entry, and all of the entry is on view where there is room."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__(glyphs=glyphs)
        self._starts = [0]

    def set_entries(self, entries: Sequence[Sequence[Line]], at: int = 0) -> None:
        """Show these entries, of one line at least each, with the cursor on entry `at`."""
        self._starts, lines = [], list[Line]()
        for entry in entries:
            self._starts.append(len(lines))
            lines += entry
        self._starts = self._starts or [0]
        self.set_model(FixedRows(lines), self._starts[max(0, min(at, len(self._starts) - 1))])

    @property
    def entry(self) -> int:
        """The entry under the cursor, 0 if there is none."""
        return self._entry_at(self.cursor)

    def _entry_at(self, line: int) -> int:
        return max(0, bisect_right(self._starts, line) - 1)

    def _go(self, entry: int) -> None:
        self.move_to(self._starts[max(0, min(entry, len(self._starts) - 1))])

    def down(self) -> None:
        self._go(self.entry + 1)

    def up(self) -> None:
        self._go(self.entry - 1)

    def _move(self, index: int, scroll: int = 0) -> None:
        entry = self._entry_at(max(0, index))
        if entry == self.entry and scroll:  # the entry is longer than what was to be scrolled
            entry += 1 if scroll > 0 else -1
        super()._move(self._starts[max(0, min(entry, len(self._starts) - 1))], scroll)

    def _reveal(self) -> bool:
        if not self.height:
            return False
        before = self.top
        super()._reveal()
        height = max(1, self.rows_kept)
        following = self._starts[self.entry + 1 :]
        end = following[0] if following else len(self.model)
        if end > self.top + height:
            self._show_from(min(self.cursor, end - height))
        return self.top != before
