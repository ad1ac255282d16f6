"""Text for the terminal in few bytes: no code that says what holds already, no blanks that can be erased."""

import re
import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

_TRAILING = re.compile(" {6,}$")
"""Blanks at the end of a text: from six on, to erase them takes fewer bytes than to write them."""
_WITHIN = re.compile(" {12,}")
"""Blanks within a text: the cursor is moved over them as well, which takes as many bytes again."""
_SEEN_ON_BLANKS = frozenset({"4", "7", "9", "21", "51", "52", "53"})
"""Attributes that show where there is no letter: underlined, reversed, struck, framed, overlined."""
_OFF = {"1": "22", "2": "22", "3": "23", "4": "24", "7": "27", "9": "29"}
"""What ends an attribute, as far as all terminals know it."""


class Look(NamedTuple):
    """How a cell is drawn. attributes, foreground, background: codes of SGR.

    background_only: nothing else of it shows.
    """

    attributes: tuple[str, ...] = ()
    foreground: str = ""
    background: str = ""
    link: str = ""
    background_only: bool = False


PLAIN = Look()


def _link_of(style: Style) -> str:
    return f"id={style.link_id};{style.link}" if style.link else ""


_RAMP = (0, 95, 135, 175, 215, 255)
_CUBE = {
    (red, green, blue): 16 + 36 * i + 6 * j + k
    for i, red in enumerate(_RAMP) for j, green in enumerate(_RAMP) for k, blue in enumerate(_RAMP)
}  # fmt: skip
_NUMBERED = {**_CUBE, **{(8 + 10 * step,) * 3: 232 + step for step in range(24)}}
"""The colours that all terminals of 256 have under the same number."""
_CHANGED_BY_THEMES = range(22)
"""Numbers that a terminal's theme gives other colours; 16 to 21 are left out too, as some themes set them."""


def _colour(layer: str, parts: Sequence[int]) -> str:
    """A colour by its number where it has one: half the bytes of red, green and blue."""
    number = parts[0] if len(parts) == 1 else _NUMBERED.get((parts[0], parts[1], parts[2]), 0)
    if len(parts) == 3 and number in _CHANGED_BY_THEMES:
        return ";".join(map(str, (layer, 2, *parts)))
    return f"{layer};5;{number}"


@lru_cache(maxsize=16384)
def look_of(style: Style | None, system: ColorSystem) -> Look:
    """What the codes of a style say."""
    if style is None or not style:
        return PLAIN
    attributes: list[str] = []
    foreground = background = ""
    codes = iter(filter(None, Strip.render_ansi(style, system).split(";")))
    for first in codes:
        number, code = int(first), first
        if number in (38, 48):
            kind = next(codes)
            code = _colour(first, [int(next(codes)) for _ in range(1 if kind == "5" else 3)])
        if 30 <= number < 40 or 90 <= number < 98:
            foreground = code
        elif 40 <= number < 50 or number >= 100:
            background = code
        else:
            attributes.append(code)
    return Look(tuple(attributes), foreground, background, _link_of(style))


@lru_cache(maxsize=16384)
def look_of_blank(look: Look) -> Look:
    """The look of a blank: its background, unless more of it shows."""
    return look if _shows_on_blanks(look) else Look(background=look.background, background_only=True)


def _shows_on_blanks(look: Look) -> bool:
    return bool(look.link) or not _SEEN_ON_BLANKS.isdisjoint(look.attributes)


@lru_cache(maxsize=16384)
def look_of_both(one: Look, other: Look) -> Look | None:
    """A look that draws cells of both."""
    if one == other:
        return one
    for blank, look in ((other, one), (one, other)):
        if blank.background_only and blank.background == look.background and not _shows_on_blanks(look):
            return look
    return None


class Piece(NamedTuple):
    """Text of one look for a place on the screen; without a look it has its codes already."""

    x: int
    y: int
    text: str
    look: Look | None


def _erased(blanks: re.Match[str]) -> str:
    return f"\x1b[{len(blanks[0])}X\x1b[{len(blanks[0])}C"


class _Pen:
    """Writes pieces, and moves and changes colours where it must."""

    def __init__(self, erases: bool) -> None:
        self.written: list[str] = []
        self._erases = erases
        self._look = PLAIN
        self._row, self._column = -1, -1
        """Where the cursor stands; -1 where that is not known, as terminals may differ."""

    def write(self, piece: Piece) -> None:
        """Write a piece at its place."""
        self._move(piece.x, piece.y)
        self._change(piece.look or PLAIN)
        letters = piece.text
        if self._erases and piece.look is not None and not _shows_on_blanks(self._look):
            letters = _TRAILING.sub("", letters)
            blanks = len(piece.text) - len(letters)
            self.written.append(_WITHIN.sub(_erased, letters) + (f"\x1b[{blanks}X" if blanks else ""))
        else:
            self.written.append(letters)
        certain = piece.look is not None and letters.isascii()
        self._row, self._column = piece.y, piece.x + len(letters) if certain else -1

    def end(self) -> None:
        """Leave the terminal without a look."""
        self._change(PLAIN)

    def _move(self, x: int, y: int) -> None:
        if y != self._row:
            self.written.append(f"\x1b[{y + 1};{x + 1}H")
        elif 0 <= self._column < x:
            self.written.append(f"\x1b[{x - self._column}C")
        elif x != self._column:
            self.written.append(f"\x1b[{x + 1}G")

    def _change(self, look: Look) -> None:
        now = self._look
        if look.background_only and not _shows_on_blanks(now):
            look = now._replace(background=look.background)
        if now.link != look.link:
            self.written.append(f"\x1b]8;{look.link or ';'}\x1b\\")
        self.written.append(_codes(now, look))
        self._look = look


def encoded(pieces: Sequence[Piece], erases: bool) -> str:
    """Pieces as text for the terminal, in the order that needs less of it: as they stand, or look by look."""
    return min((_in_order(order, erases) for order in (pieces, sorted(pieces, key=_by_look))), key=len)


def erases_in_colour() -> bool:
    """Whether this terminal is known to erase characters in the background's colour."""
    try:
        import curses
    except ImportError:  # a Python that was built without
        return False
    try:
        curses.setupterm(fd=sys.__stdout__.fileno() if sys.__stdout__ else -1)
        return curses.tigetflag("bce") > 0 and curses.tigetstr("ech") == b"\x1b[%p1%dX"
    except (curses.error, OSError, ValueError):
        return False


def _by_look(piece: Piece) -> tuple[object, ...]:
    look = piece.look or PLAIN
    return look.link, look.background, look.attributes, look.foreground, piece.y, piece.x


def _in_order(pieces: Sequence[Piece], erases: bool) -> str:
    pen = _Pen(erases)
    for piece in pieces:
        pen.write(piece)
    pen.end()
    return "".join(pen.written)


@lru_cache(maxsize=16384)
def _codes(old: Look, new: Look) -> str:
    """What makes a look of another one."""
    lost = set(old.attributes) - set(new.attributes)
    if not lost <= _OFF.keys() or (old.foreground and not new.foreground) or (old.background and not new.background):
        codes = ["0", *new.attributes, new.foreground, new.background]
    else:
        codes = sorted({_OFF[code] for code in lost})
        codes += [code for code in new.attributes if code not in old.attributes or _OFF.get(code) in codes]
        codes += [new.foreground] * (new.foreground != old.foreground)
        codes += [new.background] * (new.background != old.background)
    said = ";".join(code for code in codes if code)
    return f"\x1b[{said}m" if said else ""
