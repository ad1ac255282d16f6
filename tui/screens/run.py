"""The run screen."""

from textual.app import ComposeResult

from tui.screens.page import Page
from tui.widgets.virtual_list import VirtualList


class RunScreen(Page, scope="run"):
    """Placeholder."""

    def compose(self) -> ComposeResult:
        yield VirtualList(glyphs=self.state.glyphs)

    def main_widget(self) -> VirtualList:
        return self.query_one(VirtualList)
