"""The few characters beyond ASCII that the screens draw with, and their ASCII stand-ins."""

import codecs
import locale
import os
from dataclasses import dataclass


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
