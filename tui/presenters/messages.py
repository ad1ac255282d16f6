"""What the app has said, as text."""

import time

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, wrap_runs
from layerwise._tool.tui.state.messages import Level, Message

ROLES: dict[Level, str] = {"info": "", "good": "good", "warn": "warn", "bad": "bad"}
_WORDS: dict[Level, str] = {"info": "", "good": "", "warn": "warning: ", "bad": "error: "}
_MORE = " :messages"


def bar_line(message: Message | None, cells: int, glyphs: Glyphs) -> Line:
    """A message on one line; a long one says where all of it is."""
    if message is None:
        return []
    text = shown(_WORDS[message.level] + message.text)
    whole = fit(text, cells, glyphs.ellipsis, keep="start")
    if whole.rstrip() == text.rstrip() or cells <= 2 * len(_MORE):
        return [(whole, ROLES[message.level])]
    return [(fit(text, cells - len(_MORE), glyphs.ellipsis, keep="start"), ROLES[message.level]), (_MORE, "key")]


def message_lines(message: Message, cells: int) -> list[Line]:
    """A message in full, with the time of day."""
    clock = time.strftime("%H:%M:%S", time.localtime(message.at))
    times = f" ({message.times} times)" if message.times > 1 else ""
    text = shown(_WORDS[message.level] + message.text)
    return wrap_runs([(f"{clock}  ", "dim"), (text, ROLES[message.level]), (times, "dim")], cells, 10)
