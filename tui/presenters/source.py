"""Where a node comes from, as text: its module, and the line of Python as a link."""

import os
from urllib.parse import quote

from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.origin.origin import Origin, SourceLine, dotted
from layerwise._tool.tui.presenters.text import Line, fit

LINK = "link:"
"""A role that begins so is a link to what follows."""


def origin_lines(origin: Origin | None, cells: int) -> list[Line]:
    """The module, its class, the line of Python; none where nothing is known."""
    if origin is None:
        return []
    kind = origin.classes[-1].rpartition(".")[2] if origin.classes else ""
    by = "  by the nodes around it" if origin.told == "neighbours" else ""
    room = max(8, cells - 7)
    lines: list[Line] = [[("module ", "dim"), (fit(dotted(origin.modules), room).rstrip(), "")]]
    if kind or by:
        lines.append([("class  " if kind else "       ", "dim"), (fit(kind, room).rstrip(), ""), (by, "dim")])
    return [*lines, source_line(origin.line, cells)] if origin.line else lines


def source_line(line: SourceLine, cells: int) -> Line:
    """`line   modeling_bert.py:93 in forward`, the end of the path where it is long."""
    return [("line   ", "dim"), (fit(source_text(line), max(8, cells - 7), keep="end").rstrip(), link_role(line.file))]


def source_text(line: SourceLine) -> str:
    """`/…/modeling_bert.py:93 in forward`, escaped."""
    return shown(f"{line.file}:{line.line} in {line.function}", 2000)


def link_role(file: str) -> str:
    """The role of a link to a file; that of plain text where it is no plain absolute path."""
    return f"{LINK}file://{quote(os.fsencode(file))}" if is_plain_path(file) else ""


def is_plain_path(file: str) -> bool:
    """Whether a path that comes from a model is absolute, and nothing in it has to be escaped."""
    return file.startswith("/") and shown(file) == file
