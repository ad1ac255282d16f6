"""Escapes text from models and files before it is shown."""

import unicodedata
from collections.abc import Callable
from typing import TypeAlias

Called: TypeAlias = Callable[[str], str]
"""How a name is shown."""
_WHOLE = 400
_ESCAPED = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})  # control, format, surrogate, private, line, paragraph


def _escape(char: str) -> str:
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(text: str, limit: int | None = None) -> str:
    """Return `text` with control, format (bidirectional marks too) and line characters escaped.

    The result is safe to print on any terminal and holds no newline. With `limit` (characters), the middle
    of longer text is replaced by an ellipsis.
    """
    if limit is not None and len(text) > 4 * limit:
        text = text[: 2 * limit] + text[-2 * limit :]
        cut = True
    else:
        cut = False
    if not text.isprintable():
        text = "".join(_escape(c) if unicodedata.category(c) in _ESCAPED else c for c in text)
    if limit is not None and (cut or len(text) > limit):
        head = max(1, (limit - 1) // 2)
        return text[:head] + "…" + text[len(text) - max(0, limit - 1 - head) :]
    return text


def shown_name(name: str, limit: int | None = None) -> str:
    """Return a name as `shown` does, with those spaces escaped too that are at an end or look like another one.

    Names that differ in them would be shown alike, and a name of one space as nothing.
    """
    text = shown(name, limit)
    inner = text.strip(" ")
    if inner == text and text.isprintable():
        return text
    first = text.find(inner)
    last = first + len(inner)
    return "".join(
        _escape(c) if unicodedata.category(c) == "Zs" and (c != " " or not first <= place < last) else c
        for place, c in enumerate(text)
    )


def in_full(name: str) -> str:
    """Return a name for a text that stands by itself: whole, unless it is very long."""
    return shown_name(name, _WHOLE)


def one_line(text: str) -> str:
    """Return a message of several lines as one; spaces within a line stay."""
    return " ".join(part.strip() for part in text.splitlines() if part.strip()) if "\n" in text else text


def shown_lines(text: object, limit: int | None = None) -> str:
    """Return a message that may quote names, escaped, with line breaks kept; `limit` applies per line."""
    return "\n".join(shown(line, limit) for line in str(text).removesuffix("\n").split("\n"))


def counted(number: int, what: str) -> str:
    """`1 node`, `2,000 nodes`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
