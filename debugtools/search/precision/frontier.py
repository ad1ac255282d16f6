"""Error against the number of low nodes, from measured runs alone."""

import math
from collections.abc import Iterable
from typing import Any

Point = dict[str, Any]


def frontier(rows: Iterable[dict[str, Any]], total: int) -> list[Point]:
    """The verdict rows that no other beats in both, the most low nodes first.

    total: nodes that can be low; a row's `nodes` are those kept. A point: low, kept, rel_l2, max_abs (None where values
    were not finite), verdict.
    """
    points = [_point(row, total) for row in rows if row.get("measured", {}).get("tensor")]
    chosen: list[Point] = []
    for point in sorted(points, key=lambda point: (-point["low"], _error(point))):
        if not chosen or (_error(point) < _error(chosen[-1]) and point["low"] < chosen[-1]["low"]):
            chosen.append(point)
    return chosen


def _point(row: dict[str, Any], total: int) -> Point:
    numbers = {key: _finite(row["measured"].get(key)) for key in ("rel_l2", "max_abs")}
    return {"low": total - row["nodes"], "kept": row["nodes"], **numbers, "verdict": row["verdict"]}


def _finite(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _error(point: Point) -> float:
    return math.inf if point["rel_l2"] is None else float(point["rel_l2"])
