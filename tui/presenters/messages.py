"""What the app has said, as text."""

import time

from rich.cells import cell_len

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, wrap_runs
from layerwise._tool.tui.state.messages import Level, Message

ROLES: dict[Level, str] = {"info": "", "good": "good", "warn": "warn", "bad": "bad"}
_WORDS: dict[Level, str] = {"info": "", "good": "", "warn": "warning: ", "bad": "error: "}
_MORE = " :messages"
_LEAST = 12  # cells of a word that is cut


def bar_line(message: Message | None, cells: int, glyphs: Glyphs) -> Line:
    """A message on one line; a long one says where all of it is."""
    if message is None:
        return []
    text = shown(_WORDS[message.level] + message.text)
    whole = fit(text, cells, glyphs.ellipsis, keep="start")
    if whole.rstrip() == text.rstrip() or cells <= 2 * len(_MORE):
        return [(whole, ROLES[message.level])]
    shorter = _shorter(text, cells - len(_MORE), glyphs)
    return [(fit(shorter, cells - len(_MORE), glyphs.ellipsis, keep="start"), ROLES[message.level]), (_MORE, "key")]


def _shorter(text: str, cells: int, glyphs: Glyphs) -> str:
    """With its longest word cut in the middle, so that the end of a path and what follows it stay."""
    word = max(text.split(" "), key=cell_len)
    room = cell_len(word) - (cell_len(text) - cells)
    return text.replace(word, fit(word, room, glyphs.ellipsis), 1) if room >= _LEAST else text


def message_lines(message: Message, cells: int) -> list[Line]:
    """A message in full, with the time of day."""
    clock = time.strftime("%H:%M:%S", time.localtime(message.at))
    times = f" ({message.times} times)" if message.times > 1 else ""
    text = shown(_WORDS[message.level] + message.text)
    return wrap_runs([(f"{clock}  ", "dim"), (text, ROLES[message.level]), (times, "dim")], cells, 10)
