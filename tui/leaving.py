"""Keeping the session on disk, and noticing that it is time to go."""

import asyncio
import os
import signal
from collections.abc import Callable

from layerwise._tool.tui.state.session import SessionStore
from layerwise._tool.tui.state.shared import AppState

SAVE_AFTER = 0.5


class SessionKeeper:
    """Saves the session half a second after a change, and at the end.

    A line that the file has as open is written as closed at once: the next app would open it again, and who entered it
    would do it twice.
    """

    def __init__(self, state: AppState, store: SessionStore) -> None:
        self._state = state
        self._store = store
        self._timer: asyncio.TimerHandle | None = None
        self._line_in_file = bool(state.session.line)

    def start(self) -> None:
        """Follow the session. To be called on the running loop."""
        self._state.session.on_saved_change.subscribe(self._save_soon)
        self._state.session.on_line_closed.subscribe(self._save_closed_line)

    def save(self) -> None:
        """Write the session now; a disk that does not take it is said, not raised."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._line_in_file = bool(self._state.session.line)
        try:
            self._store.save(self._state.session)
        except OSError as error:
            self._state.say(f"the session could not be saved: {error}", "warn")

    def save_what_changed(self) -> None:
        """Write the session now if a change waits to be written."""
        if self._timer is not None:
            self.save()

    def _save_closed_line(self) -> None:
        if self._line_in_file:
            self.save()

    def _save_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAVE_AFTER, self.save)


def on_end_signals(leave: Callable[[], None]) -> None:
    """Call `leave` on SIGHUP and SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGHUP, signal.SIGTERM):
        loop.add_signal_handler(number, leave)


def terminal_is_there() -> bool:
    """Whether the controlling terminal still answers."""
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
