"""Text of a report as any form may hold it: nothing in it is obeyed by a terminal, and XML can hold it."""

import re

from layerwise._tool.backends.text import shown as escaped

_NO_CHARACTERS = re.compile("[\ufdd0-\ufdef\ufffe\uffff]")


def shown(text: str, limit: int | None = None) -> str:
    """On one line, as `backends.text.shown` escapes it; what Unicode says is no character is a question mark."""
    return _NO_CHARACTERS.sub("?", escaped(" ".join(text.split("\n")), limit))


def shown_lines(text: str, limit: int | None = None) -> str:
    """The same for a text of several lines; `limit` applies to each."""
    return "\n".join(shown(line, limit) for line in text.removesuffix("\n").split("\n"))
