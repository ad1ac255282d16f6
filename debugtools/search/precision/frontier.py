"""Error against the number of low nodes, from measured runs alone."""

import math
from collections.abc import Iterable

from layerwise._tool.debugtools.search.rows import Point, VerdictRow


def frontier(rows: Iterable[VerdictRow], total: int) -> list[Point]:
    """The verdict rows that no other beats in both, the most low nodes first.

    total: nodes that can be low. Errors of a point are None where values were not finite.
    """
    points = [_point(row, total) for row in rows if row.measured.tensor]
    chosen: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.low, _error(point))):
        if not chosen or (_error(point) < _error(chosen[-1]) and point.low < chosen[-1].low):
            chosen.append(point)
    return chosen


def _point(row: VerdictRow, total: int) -> Point:
    kept, found = row.nodes or 0, row.measured
    return Point(total - kept, kept, _finite(found.rel_l2), _finite(found.max_abs), row.verdict)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _error(point: Point) -> float:
    return math.inf if point.rel_l2 is None else point.rel_l2
