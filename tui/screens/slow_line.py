"""`:slow-line`: fewer frames and styles, or all."""

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.commands import Commands, command
from layerwise._tool.tui.controllers.slow_line import SlowLine
from layerwise._tool.tui.state.shared import AppState

_WORDS: dict[str, bool | None] = {"on": True, "off": False, "auto": None}


class SlowLineCommands(Commands, scope="global"):
    """What the user says of the line to the terminal."""

    def __init__(self, state: AppState, line: SlowLine) -> None:
        self._state, self._line = state, line

    @command("app.slow_line", "fewer frames and colours for a slow line: on, off, or auto (as measured)",
             line="slow-line [on|off|auto]", complete="words")  # fmt: skip
    def slow_line(self, word: str = "") -> None:
        """Say how it is, or change it."""
        if word and word not in _WORDS:
            self._state.say(f"slow-line takes on, off or auto, not {shown(word, 40)}", "bad")
            return
        if word:
            self._line.wish(_WORDS[word])
        self._state.say(self._line.told())

    def words(self, prefix: str) -> list[str]:
        return [word for word in _WORDS if word.startswith(prefix)]
