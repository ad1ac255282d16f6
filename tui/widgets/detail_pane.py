"""Lines that can have the focus and be scrolled."""

from layerwise._tool.tui.commands import Commanded, command
from layerwise._tool.tui.widgets.lines import LinesView


class DetailPane(Commanded, LinesView, scope="pane", can_focus=True):
    """A LinesView with the keys of a pager."""

    @command("pane.down", "scroll down", keys="j,down")
    def scroll_one_down(self) -> None:
        self.scroll_lines(1)

    @command("pane.up", "scroll up", keys="k,up")
    def scroll_one_up(self) -> None:
        self.scroll_lines(-1)

    @command("pane.page_down", "page down", keys="ctrl+d,pagedown")
    def scroll_half_down(self) -> None:
        self.scroll_lines(max(1, self.size.height // 2))

    @command("pane.page_up", "page up", keys="ctrl+u,pageup")
    def scroll_half_up(self) -> None:
        self.scroll_lines(-max(1, self.size.height // 2))

    @command("pane.top", "first line", keys="g,home")
    def scroll_top(self) -> None:
        self.scroll_lines(-len(self.lines))

    @command("pane.bottom", "last line", keys="G,end")
    def scroll_bottom(self) -> None:
        self.scroll_lines(len(self.lines))
