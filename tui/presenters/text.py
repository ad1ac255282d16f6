"""Styled text as plain data: a line is a list of (text, role) runs, a theme gives a role its colours. Its glyphs."""

import codecs
import locale
import os
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len, set_cell_size

from layerwise._tool.backends.text import shown

Run: TypeAlias = tuple[str, str]
Line: TypeAlias = list[Run]
"""Roles: "" text, dim, strong, accent, key, mark, good, warn, bad, head, cursor; on bars: title,
tab, tab-on, bar-key; in fields: input, input-cursor. `link:URL` is a link."""


def width(line: Line) -> int:
    """Terminal cells that `line` takes."""
    return sum(cell_len(text) for text, _ in line)


def plain(line: Line) -> str:
    """A line without its styles."""
    return "".join(text for text, _ in line)


def some(names: Iterable[str], most: int) -> str:
    """`a, b, c and 5 more`: at most `most` names."""
    listed = list(names)
    return ", ".join(listed[:most]) + (f" and {len(listed) - most:,} more" if len(listed) > most else "")


def fit(text: str, cells: int, ellipsis: str = "…", keep: str = "both") -> str:
    """`text` in exactly `cells` terminal cells: padded, or cut with an ellipsis.

    `keep` says which part stays: "start", "end" or "both" ends. Control characters are escaped.
    """
    text = shown(text)
    if cells <= 0:
        return ""
    if len(text) <= cells and cell_len(text) <= cells:
        return set_cell_size(text, cells)
    if cells <= len(ellipsis):
        return set_cell_size(ellipsis, cells)
    room = cells - cell_len(ellipsis)
    tail = 0 if keep == "start" else room if keep == "end" else room - room // 2
    end = last_cells(text, tail)
    start = set_cell_size(text[: room + 1], room - cell_len(end)) if room > cell_len(end) else ""
    return set_cell_size(start + ellipsis + end, cells)


def last_cells(text: str, cells: int) -> str:
    """As much of the end of `text` as fits."""
    end = text[max(0, len(text) - cells) :] if cells > 0 else ""
    while end and cell_len(end) > cells:
        end = end[1:]
    return end


def clip(line: Line, cells: int) -> Line:
    """The first `cells` terminal cells of `line`, not padded."""
    out: Line = []
    room = cells
    for text, role in line:
        if room <= 0:
            break
        taken = cell_len(text)
        out.append((text if taken <= room else set_cell_size(text, room), role))
        room -= taken
    return out


def spread(left: Line, right: Line, cells: int) -> Line:
    """`left` and `right` at the two ends of `cells` cells; `left` is cut first."""
    right = clip(right, cells)
    left = clip(left, max(0, cells - width(right) - 1))
    gap = cells - width(left) - width(right)
    return [*left, (" " * max(0, gap), ""), *right]


def merge(runs: Iterable[Run]) -> Line:
    """Join neighbours of equal role: each run costs an escape sequence on the wire."""
    out: Line = []
    for text, role in runs:
        if not text:
            continue
        if out and out[-1][1] == role:
            out[-1] = (out[-1][0] + text, role)
        else:
            out.append((text, role))
    return out


def wrap_runs(runs: Line, cells: int, indent: int = 0) -> list[Line]:
    """Break a line into lines of at most `cells` cells, between words where that can be, later ones indented."""
    lines: list[Line] = [[]]
    room = cells = max(cells, indent + 1)  # a page that is not laid out yet has no width
    for text, role in runs:
        left = text
        while left:
            piece = _fitting(left, room)
            if not piece and room < cells - indent:
                lines.append([(" " * indent, "")])
                room = cells - indent
                left = left.lstrip(" ")
                continue
            piece = piece or _first_cells(left, room)
            lines[-1].append((piece, role))
            room -= cell_len(piece)
            left = left[len(piece) :]
    return [line for number, line in enumerate(lines) if not number or plain(line).strip()]


def sentence_lines(text: str, role: str, cells: int, glyphs: "Glyphs", most: int = 5) -> list[Line]:
    """What was found, over as many lines as it takes, up to `most`; of a longer one the end is in `:messages`."""
    more = f" {glyphs.ellipsis} (:messages)"
    parts = textwrap.wrap(shown(text, 2000), max(20, cells), max_lines=most, placeholder=more)
    return [[(fit(part, cells, glyphs.ellipsis, keep="start"), role)] for part in parts]


def _fitting(text: str, cells: int) -> str:
    """As much of `text` as fits, to the end of a word; empty where its first word does not."""
    piece = _first_cells(text, cells) if cells > 0 else ""
    whole = len(piece) == len(text) or text[len(piece)] == " "
    return piece if whole and cell_len(piece) <= cells else piece[: piece.rfind(" ") + 1]


def _first_cells(text: str, cells: int) -> str:
    """As much of `text` as fits, one character at least."""
    piece = text[: cells + 1]
    while len(piece) > 1 and cell_len(piece) > cells:
        piece = piece[:-1]
    return piece


@dataclass(frozen=True)
class Glyphs:
    """Single-cell characters. `box` holds: ─ │ ┌ ┐ └ ┘ ┬ ┴ ┼ ├ ┤ in that order."""

    cursor: str
    mark: str
    partial_mark: str
    ellipsis: str
    separator: str
    times: str
    here_left: str
    here_right: str
    good: str
    bad: str
    running: str
    box: str
    bars: str


UNICODE = Glyphs("▌", "●", "○", "…", "│", "×", "▸", "◂", "✓", "✗", "▶", "─│┌┐└┘┬┴┼├┤", " ▁▂▃▄▅▆▇█")
ASCII = Glyphs(">", "*", "o", "~", "|", "x", ">", "<", "+", "!", ">", "-|++++++++|", " ._-=+*%#")


_PLAINER = str.maketrans("…×│─█▒░●○✓✗▌▸◂▾▴▶·↓┌┐└┘├┤┬┴┼▏▎▍▋▊▉", "~x|-#o.*o+!>><_^>.v+++++++++######")


def sort_sign(reverse: bool, glyphs: Glyphs) -> str:
    """Behind the name of the column that a list is sorted by; reverse: the other way round than usual."""
    usual, other = ("_", "^") if glyphs is ASCII else ("▾", "▴")
    return other if reverse else usual


def in_ascii(text: str) -> str:
    """`text` with our own signs as ASCII ones of the same width; what comes from models stays."""
    return text if text.isascii() else text.translate(_PLAINER)


def choose_glyphs() -> Glyphs:
    """ASCII when LAYERWISE_ASCII is set or the locale is not UTF-8, Unicode otherwise."""
    if os.environ.get("LAYERWISE_ASCII", "") not in ("", "0"):
        return ASCII
    try:
        encoding = codecs.lookup(locale.getpreferredencoding(False)).name
    except LookupError:
        return ASCII
    return UNICODE if encoding == "utf-8" and not _posix_locale() else ASCII


def _posix_locale() -> bool:
    # Python coerces the C locale to UTF-8; the terminal behind it was still told C.
    name = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    return name in ("C", "POSIX")
