"""Widgets drawn line by line from (text, role) runs; only lines that changed are painted again."""

from rich.cells import cell_len
from rich.segment import Segment
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from tui.presenters.text import Line, clip, merge
from tui.themes import role_style


class LineWidget(Widget):
    """Base: `line(y)` gives one row of the widget; the rest is cutting, padding and styling."""

    BASE_ROLE = ""

    def line(self, y: int) -> Line:
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        return self.strip_of(self.line(y), self.size.width)

    def strip_of(self, line: Line, cells: int) -> Strip:
        """`line` cut or padded to `cells` cells in the colours of the theme in use."""
        theme = self.app.theme
        runs = merge((text, role or self.BASE_ROLE) for text, role in clip(line, cells))
        gap = cells - sum(cell_len(text) for text, _ in runs)
        if gap > 0:
            runs = merge([*runs, (" " * gap, self.BASE_ROLE)])
        return Strip([Segment(text, role_style(theme, role)) for text, role in runs], cells)

    def refresh_lines(self, first: int, count: int = 1, x: int = 0, cells: int | None = None) -> None:
        """Paint again only these lines of the widget (`cells` wide from column `x`)."""
        self.refresh(Region(x, first, self.size.width if cells is None else cells, count))

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()


class LinesView(LineWidget):
    """A block of given lines, scrollable by whole lines; `set_lines` paints the difference."""

    DEFAULT_CSS = "LinesView { height: 1fr; }"

    def __init__(self, *, id: str | None = None, role: str = "") -> None:
        super().__init__(id=id)
        self.BASE_ROLE = role
        self.top = 0
        self._lines: list[Line] = []

    @property
    def lines(self) -> list[Line]:
        return self._lines

    def line(self, y: int) -> Line:
        number = self.top + y
        return self._lines[number] if number < len(self._lines) else []

    def set_lines(self, lines: list[Line], top: int = 0) -> None:
        """Show `lines`, starting at line `top`."""
        before = [self.line(y) for y in range(self.size.height)]
        self._lines = lines
        self.top = max(0, min(top, len(lines) - 1))
        for y, old in enumerate(before):
            if self.line(y) != old:
                self.refresh_lines(y)

    def scroll_lines(self, by: int) -> None:
        """Move the view by `by` lines, within the text."""
        last = max(0, len(self._lines) - self.size.height)
        self.set_lines(self._lines, max(0, min(self.top + by, last)))


class OneLine(LinesView):
    """A bar: one line, as wide as it may be."""

    DEFAULT_CSS = "OneLine { height: 1; }"

    def set_line(self, line: Line) -> None:
        self.set_lines([line])
