"""Fewer and shorter styles, for a slow line: the terminal's own colours, verdicts in its red, yellow and green.

A run of text in 24-bit colours costs 40 bytes beside the text, one in the terminal's own none, and neighbours that look
the same are one run.
"""

from functools import lru_cache

from rich.color import ColorType
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

from layerwise._tool.tui.themes import plain_style

_COLOURS = {"good": "green", "warn": "yellow", "bad": "red", "mark": "yellow", "key": "blue", "cursor": "blue"}
_PLAIN = ("dim", "head", "accent", "link")
"""Roles that are told apart from text by where they stand, too."""


@lru_cache(256)
def lean_style(role: str) -> Style:
    """The rich style of `role`."""
    if role.partition(":")[0] in _PLAIN or role.startswith("decade"):
        return Style.null()
    colour = _COLOURS.get(role)
    return plain_style(role) + Style(color=colour) if colour else plain_style(role)


class TerminalColours(LineFilter):
    """Takes away all colours but the terminal's own: backgrounds of panes, borders."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [Segment(text, _terminals(style) if style else None, control) for text, style, control in segments]


@lru_cache(1024)
def _terminals(style: Style) -> Style:
    own = [color if color is not None and color.type in (ColorType.STANDARD, ColorType.DEFAULT) else None
           for color in (style.color, style.bgcolor)]  # fmt: skip
    return style.without_color + Style(color=own[0], bgcolor=own[1])
