"""Commands as rows of the help and of the palette."""

from collections.abc import Sequence

from layerwise._tool.tui.commands import Command
from layerwise._tool.tui.presenters.text import Line

_SCOPES = {"global": "everywhere", "list": "lists"}


def command_rows(commands: Sequence[Command]) -> list[Line]:
    """`keys  title  :line  scope`, in columns."""
    return [
        [
            (f"{found.key_text:<16.16} ", "key"),
            (f"{found.title:<50.50} ", ""),
            (f"{':' + found.line if found.line else '':<16.16} ", "accent"),
            (_SCOPES.get(found.scope, found.scope), "dim"),
        ]
        for found in commands
    ]
