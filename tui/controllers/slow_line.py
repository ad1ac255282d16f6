"""A slow line: noticed by itself, or told by the user; then fewer frames, and fewer styles in them."""

import os
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from layerwise._tool.tui.state.line import LARGE, LineSpeed, LineWish, Pace
from layerwise._tool.tui.state.shared import AppState

VARIABLE = "LAYERWISE_SLOW_LINE"


class Asking(Protocol):
    """A terminal that answers. written: bytes sent to it so far."""

    written: int

    def ask(self) -> bool:
        """Ask for an answer; False where this terminal gives none."""
        ...


class SlowLine:
    """restyle: called when frames are to look otherwise; with whether few styles are wanted."""

    def __init__(self, state: AppState, restyle: Callable[[bool], None]) -> None:
        self._state, self._restyle = state, restyle
        self._wish = LineWish.of(os.environ.get(VARIABLE), state.settings.slow_line)
        self._speed, self._pace = LineSpeed(), Pace()
        self._terminal: Asking | None = None
        self._before = 0

    @property
    def on(self) -> bool:
        """Whether the line is taken for a slow one."""
        return self._pace.slow

    def start(self, terminal: Asking | None) -> None:
        """The app runs on a terminal, None on none."""
        self._terminal = terminal
        self._use()

    def wish(self, slow: bool | None) -> None:
        """Take the line for slow, or not; None: as measured."""
        self._wish = LineWish(slow)
        self._use()

    def told(self) -> str:
        """How it is, in words."""
        measured = f"; an answer takes {self._speed.seconds:.2f} s" if self._speed.seconds else ""
        why = "as measured" if self._wish.slow is None else "as you said"
        return f"slow line {'on' if self.on else 'off'}, {why}{measured}"

    def answered(self, now: float) -> None:
        """The terminal's answer came at a time of `monotonic`."""
        if self._speed.answered(now) and self._use():
            seconds = f"an answer takes {self._speed.seconds:.1f} s"
            self._state.say(f"slow line ({seconds}): fewer frames and colours; `:slow-line off` shows all" if self.on
                            else "the line is fast again: all frames and colours")  # fmt: skip

    def key(self) -> None:
        """A key was pressed."""
        self._pace.key()

    def wait(self, now: float) -> float:
        """Seconds until a frame may be sent."""
        return self._pace.wait(now)

    def frame_sent(self, now: float) -> None:
        """A frame was sent, if anything had changed."""
        if self._terminal is None:
            return
        size, self._before = self._terminal.written - self._before, self._terminal.written
        if not size:
            return
        self._pace.sent(now, size)
        if size >= LARGE and self._speed.may_ask(now) and self._terminal.ask():
            self._speed.asked(monotonic())

    def _use(self) -> bool:
        """Do as is wished, or measured; whether anything changed."""
        slow = self._speed.slow if self._wish.slow is None else self._wish.slow
        changed, self._pace.slow = slow != self._pace.slow, slow
        if changed:
            self._restyle(slow)
        return changed
