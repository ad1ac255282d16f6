"""The terminal's own colours: a theme that follows whatever these are, and looks as the shell around it does."""

from functools import lru_cache

from rich.style import Style

from layerwise._tool.tui.themes import plain_style

_COLOURS = {
    "good": "green", "warn": "yellow", "bad": "red", "mark": "magenta", "key": "cyan", "cursor": "cyan",
    "accent": "cyan", "link": "cyan", "decade3": "blue", "decade4": "cyan", "decade5": "green",
    "decade6": "yellow", "decade7": "magenta", "decade8": "red",
}  # fmt: skip


@lru_cache(256)
def terminal_style(role: str) -> Style:
    """The rich style of `role`: emphasis as without colours, and at most one of the terminal's own colours."""
    colour = _COLOURS.get(role.partition(":")[0])
    style = plain_style(role)
    return style + Style(color=colour) if colour else style
