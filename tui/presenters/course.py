"""The course of the error down the graph, as a picture in SVG: a dot for each row, on a log scale."""

import math
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import LayerRow

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 1000, 420, 70, 60, 30
_COLOURS = {True: "#2a7f3f", False: "#c62828", None: "#777777"}
_SMALLEST = 1e-12


def svg_lines(title: str, rows: Sequence[LayerRow]) -> Iterator[str]:
    """The picture, line by line. Rows without a relative error are left out; equal tensors lie on the bottom line."""
    drawn = [(place, row) for place, row in enumerate(rows) if isinstance(row.rel_l2, (int, float))]
    sizes = [size for _, row in drawn if 0 < (size := float(row.rel_l2)) < float("inf")]  # type: ignore[arg-type]
    low = math.floor(math.log10(max(_SMALLEST, min(sizes, default=_SMALLEST))))
    high = max(low + 1, math.ceil(math.log10(max(sizes, default=1.0))))
    font = 'font-family="monospace" font-size="12"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {font}>'
    yield f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>'
    yield _text(_LEFT, 20, title, "#000000")
    yield _text(_LEFT, 40, f"relative L2 error of {len(drawn):,} rows, in the order of the table", "#555555")
    for decade in range(low, high + 1, max(1, (high - low) // 10)):
        y = _y(10.0**decade, low, high)
        yield f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dddddd"/>'
        yield _text(5, y + 4, f"1e{decade:+03d}", "#555555")
    for place, row in drawn:
        x = _LEFT + (_WIDTH - _LEFT - 10) * (place + 0.5) / max(1, len(rows))
        y = _y(float(row.rel_l2), low, high)  # type: ignore[arg-type]
        told = f"#{row.i} {row.op} {row.tensor}: {row.rel_l2:.2e} {row.finding}"
        dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_COLOURS[row.passed]}">'
        yield f"{dot}<title>{_plain(told)}</title></circle>"
    yield "</svg>"


def _y(size: float, low: int, high: int) -> float:
    part = 1.0 if math.isinf(size) or math.isnan(size) else (math.log10(max(size, 10.0**low)) - low) / (high - low)
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * min(1.0, max(0.0, part))


def _text(x: float, y: float, text: str, colour: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.1f}" fill="{colour}">{_plain(text)}</text>'


def _plain(text: str) -> str:
    return escape(shown(text, 300))
