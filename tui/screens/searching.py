"""Starting a search from a page: on the outputs, or on the tensor under the cursor."""

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.tui.controllers.debug_start import DebugStarter
from layerwise._tool.tui.screens.page import Page
from layerwise._tool.tui.state.shared import AppState


class Searching(Page):
    """A page from which searches start; what comes of them is shown on the Debug screen."""

    def __init__(self, state: AppState) -> None:
        super().__init__(state)
        self.starter = DebugStarter(state)

    def start_search(self, search: str, *, by_hand: bool = False, target: str | None = None, then: str = "") -> None:
        """Submit a search and show it. target: the tensor that goes wrong, None for the outputs. then: what comes of
        it here, where this page is to stay.
        """
        self.run_work("debug-start", lambda: self._start(search, by_hand, target, then))

    async def _start(self, search: str, by_hand: bool, target: str | None, then: str) -> None:
        try:
            job = await self.starter.start(search, by_hand=by_hand, target=target)
        except LayerwiseError as error:
            self.state.say(str(error), "bad")
            return
        self.state.say(f"job {job}: {search} started" + (f"; {then}" if then else ""))
        if not then:
            self.post_message(self.Open("debug"))
