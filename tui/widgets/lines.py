"""Widgets drawn line by line from (text, role) runs; only lines that changed are painted again."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.events import Resize
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import Commanded, command
from layerwise._tool.tui.lifetime import stays
from layerwise._tool.tui.presenters.text import ASCII, Line, clip, in_ascii, merge
from layerwise._tool.tui.themes import TERMINAL, plain_style, role_style
from layerwise._tool.tui.themes.lean import lean_style
from layerwise._tool.tui.themes.terminal import terminal_style

if TYPE_CHECKING:
    from typing_extensions import Self


class LineWidget(Widget):
    """Base: `line(y)` gives one row of the widget; the rest is cutting, padding and styling.

    `refresh()` paints only the rows whose line is another than the one on screen: Textual asks for it at every
    change of focus, and a whole list costs 10 KB.
    """

    BASE_ROLE = ""

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._painted: dict[int, Line] = {}
        self._painted_theme = ""

    def on_mount(self) -> None:
        self._painted_theme = self.app.theme

    def focus(self, scroll_visible: bool = True) -> "Self":
        """Take the focus at once, not after the keys that are already waiting."""
        if stays(self):
            self.screen.set_focus(self, scroll_visible)
        return self

    def line(self, y: int) -> Line:
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        line = self._painted[y] = self.line(y)
        return self.strip_of(line, self.size.width)

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> "Self":
        if regions or layout or recompose or not repaint or self._painted_theme != self.app.theme:
            self._painted_theme = self.app.theme
            return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)
        if not self.size.height:  # hidden: what was drawn before must not come back from Textual's cache
            return super().refresh()
        changed = [y for y in range(self.size.height) if self._painted.get(y) != self.line(y)]
        width = self.size.width
        return super().refresh(*(Region(0, y, width, 1) for y in changed)) if changed else self

    def strip_of(self, line: Line, cells: int) -> Strip:
        """`line` cut or padded to `cells` cells in the colours of the theme in use; nothing in it is obeyed."""
        shown_line = [(shown(text), role) for text, role in line]
        if self._ascii:
            shown_line = [(in_ascii(text), role) for text, role in shown_line]
        runs = merge((text, role or self.BASE_ROLE) for text, role in clip(shown_line, cells))
        gap = cells - sum(cell_len(text) for text, _ in runs)
        if gap > 0:
            runs = merge([*runs, (" " * gap, self.BASE_ROLE)])
        return Strip([Segment(text, self._style(role)) for text, role in runs], cells)

    @property
    def _ascii(self) -> bool:
        return getattr(getattr(self.app, "state", None), "glyphs", None) is ASCII

    def _style(self, role: str) -> Style:
        if self.app.no_color:
            return plain_style(role)
        if getattr(self.app, "lean", False):
            return lean_style(role)
        return terminal_style(role) if self.app.theme == TERMINAL else role_style(self.app.theme, role)

    def refresh_lines(self, first: int, count: int = 1, x: int = 0, cells: int | None = None) -> None:
        """Paint again only these lines of the widget (`cells` wide from column `x`)."""
        self.refresh(Region(x, first, self.size.width if cells is None else cells, count))

    def notify_style_update(self) -> None:
        # Textual calls this at every change of focus, too; only another theme changes what is drawn here.
        super().notify_style_update()
        if self._painted_theme != self.app.theme:
            self.refresh()


class LinesView(LineWidget):
    """A block of given lines, scrollable by whole lines; `set_lines` paints the difference."""

    DEFAULT_CSS = "LinesView { height: 1fr; }"

    class Resized(Message):
        """It has another size, or has one again: what is shown in it may have to be laid out anew."""

    def __init__(self, *, id: str | None = None, classes: str | None = None, role: str = "") -> None:
        super().__init__(id=id, classes=classes)
        self.BASE_ROLE = role
        self.top = 0
        self.lines: list[Line] = []

    def on_resize(self, event: Resize) -> None:
        self.post_message(self.Resized())

    def line(self, y: int) -> Line:
        number = self.top + y
        return self.lines[number] if number < len(self.lines) else []

    def set_lines(self, lines: list[Line], top: int = 0) -> None:
        """Show `lines`, starting at line `top`."""
        self.lines = lines
        self.top = max(0, min(top, len(lines) - 1))
        self.refresh()

    def scroll_lines(self, by: int) -> None:
        """Move the view by `by` lines, within the text."""
        last = max(0, len(self.lines) - self.size.height)
        self.set_lines(self.lines, max(0, min(self.top + by, last)))


class OneLine(LinesView):
    """A bar: one line, as wide as it may be."""

    DEFAULT_CSS = "OneLine { height: 1; }"

    def set_line(self, line: Line) -> None:
        self.set_lines([line])


class LiveLine(LineWidget):
    """A bar whose text is made from its width when it is painted; `refresh` looks whether it changed."""

    DEFAULT_CSS = "LiveLine { height: 1; }"

    def __init__(self, make: Callable[[int], Line], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._make = make

    def line(self, y: int) -> Line:
        return self._make(self.size.width)


class Separator(LineWidget):
    """A vertical line between two panes."""

    DEFAULT_CSS = "Separator { width: 1; height: 1fr; }"

    def __init__(self, glyph: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._line: Line = [(glyph, "dim")]

    def line(self, y: int) -> Line:
        return self._line


class DetailPane(Commanded, LinesView, scope="pane", can_focus=True):
    """A LinesView with the keys of a pager. An arrow at its end says that more lines follow."""

    def line(self, y: int) -> Line:
        line = super().line(y)
        if y + 1 != self.size.height or self.top + self.size.height >= len(self.lines):
            return line
        kept = clip([(shown(text), role) for text, role in line], max(0, self.size.width - 2))
        gap = self.size.width - 1 - sum(cell_len(text) for text, _ in kept)
        return [*kept, (" " * gap, ""), ("↓", "dim")]

    def move_times(self, way: str, count: int) -> bool:
        """Scroll as the command `pane.WAY` does so many times; `top`, `bottom`: to that line."""
        half, page = max(1, self.size.height // 2), max(1, self.size.height - 1)
        steps = {"down": 1, "up": -1, "half_down": half, "half_up": -half, "page_down": page, "page_up": -page}
        self.scroll_lines(steps[way] * count if way in steps else count - 1 - self.top)
        return True

    @command("pane.down", "scroll down", keys="j,down")
    def scroll_one_down(self) -> None:
        self.scroll_lines(1)

    @command("pane.up", "scroll up", keys="k,up")
    def scroll_one_up(self) -> None:
        self.scroll_lines(-1)

    @command("pane.half_down", "half a page down", keys="ctrl+d")
    def scroll_half_down(self) -> None:
        self.scroll_lines(max(1, self.size.height // 2))

    @command("pane.half_up", "half a page up", keys="ctrl+u")
    def scroll_half_up(self) -> None:
        self.scroll_lines(-max(1, self.size.height // 2))

    @command("pane.page_down", "page down", keys="pagedown,ctrl+f")
    def scroll_whole_down(self) -> None:
        self.scroll_lines(max(1, self.size.height - 1))

    @command("pane.page_up", "page up", keys="pageup")
    def scroll_whole_up(self) -> None:
        self.scroll_lines(-max(1, self.size.height - 1))

    @command("pane.top", "first line", keys="g,home")
    def scroll_top(self) -> None:
        self.scroll_lines(-len(self.lines))

    @command("pane.bottom", "last line", keys="G,end")
    def scroll_bottom(self) -> None:
        self.scroll_lines(len(self.lines))
