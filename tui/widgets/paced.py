"""Screens whose frames are paced, so that a slow line keeps up with them."""

from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from textual.screen import Screen
from textual.timer import Timer

if TYPE_CHECKING:
    from layerwise._tool.tui.controllers.slow_line import SlowLine

Result = TypeVar("Result")


class PacedScreen(Screen[Result], inherit_bindings=False):
    """Base of the screens. What changes while a frame has to wait is in the next one."""

    _owed: Timer | None = None

    def _compositor_refresh(self) -> None:
        line: SlowLine | Any = getattr(self.app, "slow_line", None)
        wait = line.wait(monotonic()) if line is not None else 0.0
        if wait <= 0:
            super()._compositor_refresh()
            if line is not None:
                line.frame_sent(monotonic())
        elif self._owed is None:
            self._owed = self.set_timer(wait, self._pay)

    def _pay(self) -> None:
        self._owed = None
        self._compositor_refresh()
