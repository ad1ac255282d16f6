"""The whole error table in one column beside the list."""

from layerwise._tool.tui.presenters.errors import minimap_cell
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.state.errors import ErrorsState
from layerwise._tool.tui.widgets.lines import LinesView


class Minimap(LinesView):
    """Worst verdict of each part of the list, and which part is in view."""

    DEFAULT_CSS = "Minimap { width: 2; height: 1fr; }"

    def __init__(self, state: ErrorsState, glyphs: Glyphs) -> None:
        super().__init__(id="minimap")
        self._state = state
        self._glyphs = glyphs

    def update_map(self, top: int, height: int) -> None:
        """Draw for a list that shows `height` rows from row `top`."""
        rows = max(1, len(self._state.order), self.size.height)
        worst = self._state.minimap(self.size.height)
        first, last = (row * self.size.height // rows for row in (top, top + height - 1))
        in_view = len(self._state.order) > height
        self.set_lines([
            minimap_cell(int(severity), in_view and first <= y <= last, self._glyphs)
            for y, severity in enumerate(worst)
        ])  # fmt: skip
