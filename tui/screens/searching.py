"""Starting a search from a page: on the outputs, or on the tensor under the cursor."""

from layerwise._tool.tui.controllers.debug_start import DebugStarter
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.widgets.following import run_work


class Searching:
    """Starts searches for a page; what comes of them is shown on the Debug screen."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.starter = DebugStarter(page.state)

    def start(self, search: str, *, by_hand: bool = False, target: str | None = None, then: str = "") -> None:
        """Submit a search and show it. target: the tensor that goes wrong, None for the outputs. then: what comes of
        it here, where this page is to stay.
        """
        run_work(self._page, "debug-start", lambda: self._start(search, by_hand, target, then))

    async def _start(self, search: str, by_hand: bool, target: str | None, then: str) -> None:
        with self._page.state.telling():
            job = await self.starter.start(search, by_hand=by_hand, target=target)
            self._page.state.say(f"job {job}: {search} started" + (f"; {then}" if then else ""))
            if not then:
                self._page.open("debug")
