"""Copying: through the terminal (OSC 52), which works over SSH, and always into a file as well."""

from collections.abc import Callable
from pathlib import Path

from backends.files import atomic_write
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
    to_clipboard(data.decode("utf-8", "replace"))
    return f"copied {len(data):,} bytes; {where}", "info"
