"""A curve as a drawing in a page."""

import math
from collections.abc import Iterator
from html import escape

from layerwise._tool.debugtools.report.plot import EDGE, HEIGHT, LEFT, WIDTH
from layerwise._tool.debugtools.report.structure import Curve
from layerwise._tool.debugtools.report.text import shown

_FOOT = 26  # for the shares below


def drawn(curve: Curve) -> Iterator[str]:
    """An SVG of the points on a logarithmic scale, those that stand out filled; nothing where no error is above 0."""
    powers = [math.log10(point.y) for point in curve.points if point.y > 0]
    if not powers:
        return
    low, high = math.floor(min(powers)), max(math.ceil(max(powers)), math.floor(min(powers)) + 1)
    size = f'viewBox="0 0 {WIDTH} {HEIGHT + _FOOT}" width="{WIDTH}" height="{HEIGHT + _FOOT}"'
    title = escape(shown(curve.title, 300))
    yield f"<h3>{title}</h3>"
    yield f'<svg {size} role="img" aria-label="{title}"><title>{title}</title>'
    for power in range(low, high + 1, max(1, (high - low) // 5)):
        y = _y(power, low, high)
        yield f'<line class="axis" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - EDGE}" y2="{y:.1f}"/>'
        yield f'<text x="4" y="{y + 4:.1f}">1e{power:+d}</text>'
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield f'<text x="{_x(share) - 12:.1f}" y="{HEIGHT + 12}">{share:.0%}</text>'
    for point in curve.points:
        y = HEIGHT - 4 if point.y <= 0 else _y(math.log10(point.y), low, high)
        told = escape(shown(f"{point.text}: {point.y:.3g} at {point.x:.1%}", 200))
        kind, radius = ("dot bad", 6) if point.stands_out else ("dot", 3)
        yield f'<circle class="{kind}" cx="{_x(point.x):.1f}" cy="{y:.1f}" r="{radius}"><title>{told}</title></circle>'
    yield "</svg>"


def _x(share: float) -> float:
    return LEFT + (WIDTH - LEFT - EDGE) * min(1.0, max(0.0, share))


def _y(power: float, low: int, high: int) -> float:
    return EDGE + (HEIGHT - 2 * EDGE) * (high - power) / (high - low)
