"""Copying: through the terminal (OSC 52), which works over SSH, and always into a file as well.

What goes to the clipboard is one line without control characters, and to a shell either a command or a single word.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.shell import shell_line
from layerwise._tool.backends.text import counted, shown, shown_lines
from layerwise._tool.tui.state.messages import Level

CLIPBOARD_LIMIT = 32_000
"""Bytes; terminals and tmux drop larger OSC 52 texts silently."""


@dataclass(frozen=True)
class Copy:
    """Something that can be copied: the words of a command, or names, paths, texts, each a word.

    key: picks it. block: what the file holds in place of the line, with its line breaks.
    """

    key: str
    what: str
    words: tuple[str, ...]
    block: str = ""

    @property
    def line(self) -> str:
        """As one line that is safe to paste."""
        return shell_line(self.words)


def block_copy(key: str, what: str, text: str) -> Copy:
    """A text to be read: with its line breaks in the file, as one word for the clipboard."""
    return Copy(key, what, (" ".join(shown_lines(text).split()),), shown_lines(text))


def yank(copy: Copy, folder: Path, to_clipboard: Callable[[str], None]) -> tuple[str, Level]:
    """Copy to `folder`/yank.txt and, if short enough, through the terminal; returns what to tell the user."""
    line = copy.line
    size = len(line.encode())
    path = folder / "yank.txt"
    try:
        atomic_write(path, copy.block or line)
        where = f"also in {shown(str(path))}"
    except OSError as error:
        where = f"{shown(str(path))} could not be written: {error.strerror}"
    if size > CLIPBOARD_LIMIT:
        return f"{size:,} bytes are too long for the terminal's clipboard; {where}", "warn"
    to_clipboard(line)
    return f"copied {counted(size, 'byte')}{' as one line' if copy.block else ''}; {where}", "info"
