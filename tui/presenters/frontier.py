"""Error against what stays in FP32, as a curve of characters."""

import math
from collections.abc import Sequence

from layerwise._tool.debugtools.search.lens.rows import FrontierPoint
from layerwise._tool.tui.presenters.text import Glyphs, Line

_FOOT = (" cost of what stays in FP32 ", " in FP32 ")
_LEFT, _WIDEST, _LEAST = 9, 64, 24
_DECADES = 2.0  # what is below is next to nothing


def frontier_lines(
    points: Sequence[FrontierPoint], here: tuple[float, float], cells: int, height: int, glyphs: Glyphs
) -> list[Line]:
    """The curve on a logarithmic scale, `height` lines of it, and its axis; nothing where there is none to draw.

    What is a hundredth of the largest error or less is at the bottom.

    here: share of the cost and error of the nodes that stay in FP32 now.
    """
    wide = min(_WIDEST, cells - _LEFT - 1)
    steps = _steps(points, wide) if wide >= _LEAST else []
    known = [error for error in steps if error]
    if len(known) < 2 or max(known) <= min(known):
        return []
    high = math.log10(max(known))
    low = max(math.log10(min(known)), high - _DECADES)

    def line_of(error: float) -> int:
        if error <= 0:
            return height - 1
        return min(height - 1, max(0, round((high - math.log10(error)) / (high - low) * (height - 1))))

    grid = [[" "] * wide for _ in range(height)]
    for column, error in enumerate(steps):
        if error is not None:
            grid[line_of(error)][column] = "·"
    mark = (line_of(here[1]), min(wide - 1, round(here[0] * (wide - 1)))) if math.isfinite(here[1]) else None
    lines = [
        [*_scale(number, height, low, high, glyphs), *_drawn(row, mark, number, glyphs)]
        for number, row in enumerate(grid)
    ]
    foot = next(text for text in _FOOT if len(text) <= wide - 8).center(wide - 8, glyphs.box[0])
    return [*lines, [(" " * _LEFT, ""), (f"{glyphs.box[4]}0 %{foot}100 %", "dim")]]


def _steps(points: Sequence[FrontierPoint], wide: int) -> list[float | None]:
    """For each column the least error at no more than its cost; None where that is not finite."""
    found: list[float | None] = []
    for column in range(wide):
        share = column / (wide - 1) + 1e-9
        errors = [point.rel_l2 for point in points if point.cost <= share and point.rel_l2 is not None]
        found.append(min(errors, default=None))
    return found


def _scale(number: int, height: int, low: float, high: float, glyphs: Glyphs) -> Line:
    """The error at the top, in the middle and at the bottom."""
    at = {0: high, height // 2: high - (high - low) * (height // 2) / (height - 1), height - 1: low}
    text = f"{10 ** at[number]:.1e}" if number in at else ""
    return [(f"{text:>{_LEFT - 1}} ", "dim"), (glyphs.box[1], "dim")]


def _drawn(row: Sequence[str], mark: tuple[int, int] | None, number: int, glyphs: Glyphs) -> Line:
    if mark is None or mark[0] != number:
        return [("".join(row).rstrip(), "accent")]
    at = mark[1]
    return [("".join(row[:at]), "accent"), (glyphs.mark, "mark"), ("".join(row[at + 1 :]).rstrip(), "accent")]
