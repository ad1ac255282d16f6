"""A list with a text at its foot."""

from layerwise._tool.tui.presenters.text import Line
from layerwise._tool.tui.widgets.virtual_list import VirtualList

ROWS, LEAST = 8, 4
"""Rows that a foot leaves if there is room, and those that it leaves in any case."""


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
        return self.height - max(self.usual_foot, len(self._shown_foot)) if self._foot else self.height

    @property
    def usual_foot(self) -> int:
        """Rows of a foot that is not long."""
        return max(self.height // 2, self.height - ROWS)

    @property
    def _shown_foot(self) -> tuple[Line, ...]:
        return self._foot[: max(self.usual_foot, self.size.height - LEAST)]

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
