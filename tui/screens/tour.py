"""`:tour`: five steps through the demo, each a page and a sentence."""

from collections.abc import Awaitable, Callable

from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.screens.switching import Switching
from layerwise._tool.tui.state.shared import AppState

STEPS = (
    ("errors", "f goes to the first bad row, the lines below say why"),
    ("errors", "L gives every layer the reference's inputs: its own error"),
    ("debug", "what L found, ranked; enter on a suspect goes to its node"),
    ("graph", "p and c follow the edges, x changes the graph from here on"),
    ("errors", "y copies the command that does the same, B writes a bundle; ? has all keys"),
)
"""A page, and what to do there; short enough for 80 columns."""


class Tour(Commands, scope="global"):
    """show: brings a page to the front."""

    def __init__(self, state: AppState, switching: Switching, show: Callable[[str], Awaitable[None]]) -> None:
        self._state, self._switching, self._show = state, switching, show
        self._step = 0

    @command("app.tour", "five steps through the demo; again: the next step", line="tour")
    async def tour(self) -> None:
        """The next step; the first one opens the demo."""
        model = self._state.session.model
        if model is None or "demo" not in model.parts:
            self._switching.tour = True
            await self._switching.demo()
            return
        page, text = STEPS[self._step]
        await self._show(page)
        self._step += 1
        next_step = ":tour goes on" if self._step < len(STEPS) else ""
        self._state.say(f"{self._step}/{len(STEPS)}  {text}{f'; {next_step}' if next_step else ''}", "good")
        self._step %= len(STEPS)
