"""Screens whose frames are paced, so that a slow line keeps up with them."""

from time import monotonic
from typing import Protocol, TypeVar

from textual.screen import Screen
from textual.timer import Timer

Result = TypeVar("Result")
SOONER = 0.02
"""Seconds by which a frame must be due earlier, as after a key, to be sent earlier."""


class Paced(Protocol):
    """The app's view of the line to the terminal."""

    def wait(self, now: float) -> float:
        """Seconds until a frame may be sent."""
        ...

    def frame_sent(self, now: float) -> None: ...


class PacedScreen(Screen[Result], inherit_bindings=False):
    """Base of the screens. What changes while a frame has to wait is in the next one."""

    _owed: Timer | None = None
    _due = 0.0

    def _compositor_refresh(self) -> None:
        line: Paced | None = getattr(self.app, "slow_line", None)
        wait = line.wait(monotonic()) if line is not None else 0.0
        if self.app._batch_count:  # what is drawn in a batch is not sent, and would not be drawn again
            wait = max(wait, SOONER)
        if wait <= 0:
            self._compositor.update_widgets(self._dirty_widgets)  # those that came while it waited are forgotten then
            super()._compositor_refresh()
            if line is not None:
                line.frame_sent(monotonic())
        elif self._owed is None or monotonic() + wait < self._due - SOONER:
            if self._owed is not None:
                self._owed.stop()
            self._due, self._owed = monotonic() + wait, self.set_timer(wait, self._pay)

    def _pay(self) -> None:
        self._owed = None
        if self._layout_required and self.is_current and not self.app._batch_count:
            self._on_timer_update()  # lays out, then comes back to send: else new text stood in old places
        else:
            self._compositor_refresh()
