"""x coordinates of vertices in ordered rows: as near to their neighbours as order and widths allow."""

from collections.abc import Sequence

GAP = 24.0
_PASSES = 6
_STRAIGHT = 8.0
Rows = Sequence[Sequence[int]]
Links = Sequence[Sequence[int]]


def spread_rows(rows: Rows, above: Links, below: Links, widths: Sequence[float], n_items: int) -> list[float]:
    """Return the x of each vertex's centre. Vertices from `n_items` on are bends, whose edges are kept straight.

    Each pass moves a row's vertices as near as possible (least squares) to the mean of their neighbours, keeping their
    order, by pooling adjacent violators, which is linear.
    """
    x = [0.0] * len(widths)
    for row in rows:
        _pack(row, widths, x)
    for turn in range(_PASSES):
        down = turn % 2 == 0
        sides = (above, below) if turn >= _PASSES - 2 else (above,) if down else (below,)
        for row in rows if down else reversed(rows):
            wanted = [_wanted(v, [other for side in sides for other in side[v]], x, n_items) for v in row]
            _settle(row, wanted, widths, x)
    for row in rows:
        _settle(row, [_straight(v, above, below, x) for v in row], widths, x)
    return x


def _pack(row: Sequence[int], widths: Sequence[float], x: list[float]) -> None:
    total = sum(widths[v] for v in row) + GAP * (len(row) - 1)
    at = -total / 2
    for vertex in row:
        x[vertex] = at + widths[vertex] / 2
        at += widths[vertex] + GAP


def _wanted(vertex: int, neighbours: Sequence[int], x: Sequence[float], n_items: int) -> tuple[float, float]:
    """Return a vertex's preferred position, and its weight."""
    if not neighbours:
        return x[vertex], 0.1
    if vertex >= n_items:
        return sum(x[v] for v in neighbours) / len(neighbours), _STRAIGHT
    weights = [2.0 if v >= n_items else 1.0 for v in neighbours]
    return sum(w * x[v] for w, v in zip(weights, neighbours, strict=True)) / sum(weights), sum(weights)


def _straight(vertex: int, above: Links, below: Links, x: Sequence[float]) -> tuple[float, float]:
    """Return the position of its only neighbour above, or else its current one."""
    if len(above[vertex]) == 1 and len(below[above[vertex][0]]) == 1:
        return x[above[vertex][0]], _STRAIGHT
    return x[vertex], 1.0


def _settle(row: Sequence[int], wanted: Sequence[tuple[float, float]], widths: Sequence[float], x: list[float]) -> None:
    """Place a row: minimise the weighted squared distances to the preferred positions, at least GAP apart."""
    offsets, at = [], 0.0
    for vertex in row:
        offsets.append(at + widths[vertex] / 2)
        at += widths[vertex] + GAP
    pools: list[tuple[float, float, int]] = []  # mean, weight, count
    for offset, (place, weight) in zip(offsets, wanted, strict=True):
        mean, total, count = place - offset, weight, 1
        while pools and pools[-1][0] >= mean:
            before, heavy, many = pools.pop()
            mean = (before * heavy + mean * total) / (heavy + total)
            total, count = heavy + total, count + many
        pools.append((mean, total, count))
    places = [mean for mean, _, count in pools for _ in range(count)]
    for vertex, offset, place in zip(row, offsets, places, strict=True):
        x[vertex] = place + offset
