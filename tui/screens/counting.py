"""A count before a move, as in vim: `#12j`, or `12j` where no digit has a meaning of its own (preset "counts")."""

from collections.abc import Callable, Iterable

from layerwise._tool.tui.commands import Command, Commands, command
from layerwise._tool.tui.state.shared import AppState

_MOST = 6  # digits


class Counting(Commands, scope="global"):
    """The count that is being typed. here: the commands that keys reach now."""

    def __init__(self, state: AppState, here: Callable[[], Iterable[Command]]) -> None:
        self._state, self._here = state, here
        self._typed: str | None = None

    @command("app.count", "a count for the next move: #12j, #40G, #3ctrl+d", keys="number_sign", line="count")
    def begin(self) -> None:
        self._typed = ""
        self._show()

    def take(self, key: str) -> bool:
        """Whether a key goes on with the count, begins it or gives it up."""
        if self._typed is None:
            begins = key in "123456789" and not self._digits_mean()
            if begins:
                self._typed = key
                self._show()
            return begins
        if key == "escape":
            self.end()
        elif key == "backspace" and self._typed:
            self._typed = self._typed[:-1]
            self._show()
        elif len(key) == 1 and key in "0123456789":
            self._typed = (self._typed + key)[:_MOST]
            self._show()
        else:
            return False
        return True

    def end(self) -> int:
        """The count typed, 0 for none; it is over."""
        typed, self._typed = self._typed, None
        if typed is not None:
            self._state.say("")
        return int(typed or 0)

    def _digits_mean(self) -> bool:
        digits = set("123456789")
        return any(digits.intersection(found.keys.split(",")) for found in self._here())

    def _show(self) -> None:
        self._state.prompt(f"count {self._typed or ''}_   then j k G g, ctrl+d ctrl+u or a page; esc gives it up")
