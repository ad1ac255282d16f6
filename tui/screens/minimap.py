"""The error table in one column, beside its list."""

from layerwise._tool.tui.presenters.errors_page import minimap_cell
from layerwise._tool.tui.presenters.text import Glyphs
from layerwise._tool.tui.state.errors_page import ErrorsState
from layerwise._tool.tui.widgets.lines import LinesView


class Minimap(LinesView):
    """The error table in one column: the worst verdict of each part of the list, and which part is in view."""

    DEFAULT_CSS = "Minimap { width: 2; height: 1fr; }"

    def __init__(self, state: ErrorsState, glyphs: Glyphs) -> None:
        super().__init__(id="minimap")
        self._state = state
        self._glyphs = glyphs

    def update_map(self, top: int, height: int) -> None:
        """Draw for a list that shows `height` rows from row `top`."""
        rows = max(1, self._state.lines(), self.size.height)
        worst = self._state.minimap(self.size.height)
        first, last = (row * self.size.height // rows for row in (top, top + height - 1))
        in_view = self._state.lines() > height
        self.set_lines([
            minimap_cell(int(severity), in_view and first <= y <= last, self._glyphs)
            for y, severity in enumerate(worst)
        ])  # fmt: skip
