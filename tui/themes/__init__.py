"""Colours of the app: what a role of the presenters looks like in each theme.

Truecolor values that stay apart when a terminal has only 256 or 16 colours or none: emphasis is always also bold,
reversed or a glyph.
"""

from dataclasses import dataclass
from functools import lru_cache

from rich.style import Style
from textual.theme import Theme


@dataclass(frozen=True)
class Palette:
    """Hex colours of one theme. ramp: of powers of ten, the smallest first.

    colour-blind: blue is good and orange is bad, and its ramp grows lighter only, which all eyes see.
    """

    name: str
    dark: bool
    background: str
    bar: str
    text: str
    dim: str
    accent: str
    mark: str
    good: str
    warn: str
    bad: str
    ramp: tuple[str, ...]


_DARK_RAMP = ("#5f5f87", "#5f5faf", "#875fd7", "#af5fd7", "#d75faf", "#ff5f87", "#ff875f", "#ffd75f")
_LIGHT_RAMP = ("#8787af", "#5f5faf", "#5f5fd7", "#875fd7", "#af5faf", "#d7005f", "#d75f00", "#870000")
_ONE_WAY_RAMP = ("#5f6f9f", "#6f7f9f", "#8787a7", "#9f9f9f", "#bfaf7f", "#d7bf5f", "#f0d040", "#ffef87")
TERMINAL = "terminal"
"""The theme of the terminal's own sixteen colours, whatever they are: `themes/terminal.py` has its styles."""
PALETTES = {
    palette.name: palette
    for palette in (
        Palette("dark", True, "#121212", "#303030", "#d7d7d7", "#949494", "#5fafff", "#ffaf5f", "#5fd75f", "#ffd75f",
                "#ff5f5f", _DARK_RAMP),
        Palette("light", False, "#ffffff", "#d7d7d7", "#121212", "#5f5f5f", "#005faf", "#af5f00", "#005f00", "#875f00",
                "#af0000", _LIGHT_RAMP),
        Palette("contrast", True, "#000000", "#000000", "#ffffff", "#ffffff", "#00ffff", "#ffff00", "#00ff00",
                "#ffff00", "#ff5f5f", _DARK_RAMP),
        Palette("colour-blind", True, "#121212", "#303030", "#d7d7d7", "#949494", "#87d7ff", "#d7afff", "#5fafff",
                "#ffd75f", "#ff8700", _ONE_WAY_RAMP),
        Palette(TERMINAL, True, "#121212", "#303030", "#d7d7d7", "#949494", "#5fafff", "#ffaf5f", "#5fd75f", "#ffd75f",
                "#ff5f5f", _DARK_RAMP),
    )
}  # fmt: skip
DEFAULT = "dark"


def textual_theme(palette: Palette) -> Theme:
    """The same colours for Textual's own styles."""
    return Theme(
        name=palette.name, primary=palette.accent, secondary=palette.accent, accent=palette.mark, warning=palette.warn,
        error=palette.bad, success=palette.good, foreground=palette.text, background=palette.background,
        surface=palette.background, panel=palette.bar, boost=palette.bar, dark=palette.dark,
    )  # fmt: skip


@lru_cache(512)
def role_style(theme: str, role: str) -> Style:
    """The rich style of `role`; a role that no theme knows looks like plain text. `link:URL` is a link to there."""
    palette = PALETTES.get(theme, PALETTES[DEFAULT])
    role, _, link = role.partition(":")
    base = Style(color=palette.text, bgcolor=palette.background)
    bar = Style(color=palette.text, bgcolor=palette.bar)
    reverse = Style(color=palette.background, bgcolor=palette.accent, bold=True)
    roles = {
        "dim": Style(color=palette.dim),
        "strong": Style(bold=True),
        "accent": Style(color=palette.accent),
        "cursor": Style(color=palette.accent, bold=True),
        "key": Style(color=palette.accent, bold=True),
        "mark": Style(color=palette.mark, bold=True),
        "good": Style(color=palette.good),
        "warn": Style(color=palette.warn, bold=True),
        "bad": Style(color=palette.bad, bold=True),
        "title": bar + Style(bold=True),
        "tab": bar,
        "bar-key": bar + Style(color=palette.accent, bold=True),
        "tab-on": reverse,
        "head": Style(color=palette.dim, underline=True),
        "link": Style(color=palette.accent, link=link or None),
        "input": Style(bold=True),
        "input-cursor": Style(color=palette.background, bgcolor=palette.text),
    }
    roles |= {f"decade{number}": Style(color=colour) for number, colour in enumerate(palette.ramp, 1)}
    return base + roles.get(role, Style.null())


_PLAIN = {
    "dim": Style(dim=True), "decade1": Style(dim=True), "decade2": Style(dim=True),
    "strong": Style(bold=True), "cursor": Style(bold=True), "key": Style(bold=True), "mark": Style(bold=True),
    "warn": Style(bold=True), "bad": Style(bold=True), "input": Style(bold=True), "tab-on": Style(bold=True),
    "title": Style(reverse=True, bold=True), "tab": Style(reverse=True), "bar-key": Style(reverse=True, bold=True),
    "input-cursor": Style(reverse=True), "head": Style(underline=True),
}  # fmt: skip


@lru_cache(512)
def plain_style(role: str) -> Style:
    """The rich style of `role` without colours (NO_COLOR): what stands out in colours is bold, never paler."""
    role, _, link = role.partition(":")
    return Style(link=link) if role == "link" and link else _PLAIN.get(role, Style.null())
