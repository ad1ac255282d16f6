"""The pages of the app, of which one is in front."""

from textual.containers import Container

from layerwise._tool.tui.controllers.shared import Controllers
from layerwise._tool.tui.screens.debug import DebugScreen
from layerwise._tool.tui.screens.errors_page import ErrorsScreen
from layerwise._tool.tui.screens.graph import GraphScreen
from layerwise._tool.tui.screens.history import ChangesScreen, HistoryScreen
from layerwise._tool.tui.screens.home import HomeScreen
from layerwise._tool.tui.screens.jobs import JobsScreen
from layerwise._tool.tui.screens.matrix import MatrixScreen
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.screens.perf import PerfScreen
from layerwise._tool.tui.screens.run import RunScreen
from layerwise._tool.tui.screens.surgery import SurgeryScreen
from layerwise._tool.tui.state.shared import AppState

PAGES: tuple[type[Page], ...] = (
    HomeScreen, GraphScreen, ErrorsScreen, JobsScreen, DebugScreen, SurgeryScreen, HistoryScreen, ChangesScreen,
    PerfScreen, MatrixScreen, RunScreen,
)  # fmt: skip


class Pages(Container):
    """Each page is made and mounted when it is shown the first time, and hidden while another is in front."""

    DEFAULT_CSS = "Pages { height: 1fr; }"

    def __init__(self, state: AppState, controllers: Controllers) -> None:
        super().__init__(id="pages")
        self._state, self._controllers = state, controllers
        self._made: dict[str, Page] = {}

    @property
    def front(self) -> Page:
        """The page in front."""
        return self._made[self._state.session.screen]

    async def show(self, name: str) -> None:
        """Bring a page to the front, and give it the focus."""
        with self.app.batch_update():  # two at once would share the height, and lists scroll for the half
            page = self._made.get(name)
            if page is None:
                kind = next(kind for kind in PAGES if name == kind.SCOPE)
                page = self._made[name] = kind(self._state, self._controllers)
                await self.mount(page)
            for other in self._made.values():
                other.display = other is page
        page.came_from = self._state.session.screen if len(self._made) > 1 else ""
        self._state.session.set_screen(name)
        page.shown_again()
        page.call_after_refresh(page.paint)
        page.main_widget().focus()
