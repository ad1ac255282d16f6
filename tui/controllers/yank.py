"""Copying: through the terminal (OSC 52), which works over SSH, and always into a file as well."""

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

from backends.files import atomic_write
from backends.text import shown
from tui.state.shared import Level

CLIPBOARD_LIMIT = 32_000
"""Bytes; terminals and tmux drop larger OSC 52 texts silently."""


def yank(text: str, folder: Path, to_clipboard: Callable[[str], None]) -> tuple[str, Level]:
    """Copy `text` to `folder`/yank.txt and, if short enough, through the terminal; returns what to tell the user."""
    data = text.encode("utf-8", "surrogateescape")
    path = folder / "yank.txt"
    try:
        atomic_write(path, data)
        where = f"also in {path}"
    except OSError as error:
        where = f"{path} could not be written: {error.strerror}"
    if len(data) > CLIPBOARD_LIMIT:
        return f"{len(data):,} bytes are too long for the terminal's clipboard; {where}", "warn"
    if safe_to_paste(text):
        to_clipboard(text)
    else:
        to_clipboard(shown(text))
        where = f"control characters written out; as it is in {path}"
    return f"copied {len(data):,} bytes; {where}", "info"


def safe_to_paste(text: str) -> bool:
    """Whether no character but line ends could steer the terminal or shell that it is pasted into."""
    return all(line == shown(line) for line in text.split("\n"))


def shell_line(words: Iterable[str]) -> str:
    """`words` as one line for bash; control characters are written as escapes, so that pasting obeys nothing."""
    return " ".join(_quoted(word) for word in words)


def _quoted(word: str) -> str:
    if word == shown(word):
        return shlex.quote(word)
    data = word.encode("utf-8", "surrogateescape")
    plain = "".join(chr(b) if 32 <= b < 127 and chr(b) not in "\\'" else f"\\x{b:02x}" for b in data)
    return f"$'{plain}'"
