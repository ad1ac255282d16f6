"""The errors of layers in the order of the model, as a drawing in a page."""

import math
from collections.abc import Iterator, Sequence
from html import escape

from layerwise._tool.debugtools.report.structure import Case
from layerwise._tool.debugtools.report.text import shown

WIDTH, HEIGHT, LEFT, EDGE = 900, 170, 60, 18
_MOST = 2000
_NONE = HEIGHT - 4  # where no error is drawn
_COLUMNS = ("rel L2", "max abs")


def plot(cases: Sequence[Case]) -> Iterator[str]:
    """An SVG of the first error that these cases have, on a logarithmic scale; nothing for fewer than three layers.

    No error is at the bottom, one that is not finite at the top. Of many layers each point is the largest of some that
    follow each other.
    """
    for column in _COLUMNS:
        points = [(case, error) for case in cases if (error := _error(case, column)) is not None]
        if len(points) >= 3 and any(0 < error < math.inf for _, error in points):
            yield from _drawn(column, _thinned(points))
            return


def _error(case: Case, column: str) -> float | None:
    value = case.figures.get(column)
    if case.i < 0 or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else math.inf


def _thinned(points: Sequence[tuple[Case, float]]) -> list[tuple[Case, float]]:
    step = -(-len(points) // _MOST)
    return [max(points[at : at + step], key=lambda point: point[1]) for at in range(0, len(points), step)]


def _drawn(column: str, points: Sequence[tuple[Case, float]]) -> Iterator[str]:
    powers = [math.log10(error) for _, error in points if 0 < error < math.inf]
    low = math.floor(min(powers))
    high = max(math.ceil(max(powers)), low + 1)
    title = f"{column} of each layer, in the order of the model"
    yield f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{title}">'
    yield f"<title>{title}</title>"
    if any(error <= 0 for _, error in points):
        yield f'<text x="4" y="{_NONE + 3}">0</text>'
    step = max(1, (high - low) // 5)
    for power in range(low, high + 1, step):
        y = _y(power, low, high)
        yield f'<line class="axis" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - EDGE}" y2="{y:.1f}"/>'
        yield f'<text x="4" y="{y + 4:.1f}">1e{power:+d}</text>'
    for number, (case, error) in enumerate(points):
        x = LEFT + (WIDTH - LEFT - EDGE) * (number + 0.5) / len(points)
        kind = "dot bad" if case.outcome == "failed" else "dot"
        told = escape(shown(f"{case.name}: {error:.3g}", 200))
        y = _NONE if error <= 0 else _y(high if error == math.inf else math.log10(error), low, high)
        yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"><title>{told}</title></circle>'
    yield "</svg>"


def _y(power: float, low: int, high: int) -> float:
    return EDGE + (HEIGHT - 2 * EDGE) * (high - power) / (high - low)
