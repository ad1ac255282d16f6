"""The command that opens a line of Python in the user's editor. Paths come from models: nothing in them is obeyed."""

import os
import stat
from pathlib import Path

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.shell import shell_words
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.origin.origin import SourceLine
from layerwise._tool.tui.presenters.source import is_plain_path

_WITH_COLON = frozenset({"hx", "helix", "subl", "zed"})
_WITH_GOTO = frozenset({"code", "code-insiders", "codium", "cursor"})


def editor_command(line: SourceLine) -> list[str]:
    """The words that open a line in $VISUAL or $EDITOR, to be run without a shell.

    UsageError where neither is set, or the file is no regular file that is there, with an absolute path of plain text.
    """
    file = line.file
    name = shown(file, 200)
    if not is_plain_path(file):
        raise UsageError(f"{name} is not opened: it is no absolute path without control characters")
    try:
        regular = stat.S_ISREG(Path(file).stat().st_mode)
    except (OSError, ValueError):
        raise UsageError(f"{name}: no such file here") from None
    if not regular:
        raise UsageError(f"{name} is not opened: it is no regular file")
    asked = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shell_words(asked)
    except ValueError as error:
        raise UsageError(f"$EDITOR: {error}") from error
    if not words:
        raise UsageError("$EDITOR is not set")
    return [*words, *_place(Path(words[0]).name, file, line.line)]


def _place(editor: str, file: str, line: int) -> list[str]:
    """How an editor is told a line; most take +LINE."""
    if editor in _WITH_GOTO:
        return ["--goto", f"{file}:{line}"]
    return [f"{file}:{line}"] if editor in _WITH_COLON else [f"+{line}", file]
