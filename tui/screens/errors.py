"""The errors screen."""

from textual.app import ComposeResult

from tui.screens.page import Page
from tui.widgets.virtual_list import VirtualList


class ErrorsScreen(Page, scope="errors"):
    """Placeholder."""

    def compose(self) -> ComposeResult:
        yield VirtualList(glyphs=self.state.glyphs)

    def main_widget(self) -> VirtualList:
        return self.query_one(VirtualList)
