"""A list with a text at its foot."""

from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.widgets.virtual_list import VirtualList

ROWS = 8
"""Rows that a foot leaves, if there is room."""


class FootedList(VirtualList):
    """A list with a text over its last rows, some of which always stay; the cursor is kept above it.

    A widget of its own would make Textual lay out and paint the whole page, twice.
    """

    _foot: tuple[Line, ...] = ()

    @property
    def rows_shown(self) -> int:
        return self.size.height - len(self._shown_foot)

    @property
    def rows_kept(self) -> int:
        """Those that every foot leaves: it grows and shrinks as more is known, and nothing moves by that."""
        height = self.height
        return height - max(height // 2, height - ROWS) if self._foot else height

    @property
    def _shown_foot(self) -> tuple[Line, ...]:
        height = self.size.height
        return self._foot[: max(height // 2, height - ROWS)]

    def set_foot(self, lines: list[Line]) -> None:
        """Show `lines` below the rows; none gives all room to the rows again."""
        self._foot = tuple(lines)
        self._reveal()
        self.refresh()

    def line(self, y: int) -> Line:
        if not self._foot:
            return super().line(y)
        foot = self._shown_foot
        row = y - self.size.height + len(foot)
        return super().line(y) if row < 0 else foot[row]
