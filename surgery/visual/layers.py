"""Layered graph drawing: each item's row, order and position (Sugiyama, Tagawa, Toda 1981).

Items are numbered in topological order. An edge over several rows has a bend in each row between, shared by all edges
of its tensor; an edge over more than LONGEST rows (fewer if bends outnumber items) is only marked at both ends,
which keeps everything linear.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate

GAP = 24.0
_PASSES = 6
_STRAIGHT = 8.0
Rows = Sequence[Sequence[int]]
Links = Sequence[Sequence[int]]
LONGEST = 32
BENDS = 4
SPARE_BENDS = 4000
_SWEEPS = 4


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


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between items; `tensor` identifies the edges of one tensor."""

    source: int
    target: int
    tensor: int


@dataclass(slots=True)
class Drawing:
    """Row and x (of the centre) by item; width of the whole. bends: of each given edge, the x in each row between its
    ends; None for one that is not drawn.
    """

    row: list[int]
    x: list[float]
    width: float
    bends: list[list[float] | None]


@dataclass(slots=True)
class _Net:
    """Items and bends as vertices: rows of vertices, and each vertex's neighbours above and below."""

    rows: list[list[int]]
    above: list[list[int]]
    below: list[list[int]]
    widths: list[float]
    chains: dict[tuple[int, int], list[int]] = field(default_factory=dict)


def draw(widths: Sequence[float], edges: Sequence[Edge], late: Sequence[bool], bend_width: float) -> Drawing:
    """Lay out items of these widths in rows. late: items placed just above their readers, not at the top."""
    row = _ranks(len(widths), edges, late)
    longest = _longest(row, edges)
    drawn = [longest >= row[e.target] - row[e.source] > 0 for e in edges]
    net = _net(row, widths, [e for e, is_drawn in zip(edges, drawn, strict=True) if is_drawn], bend_width)
    _order(net)
    x = spread_rows(net.rows, net.above, net.below, net.widths, len(widths))
    left = min((x[v] - net.widths[v] / 2 for v in range(len(x))), default=0.0)
    right = max((x[v] + net.widths[v] / 2 for v in range(len(x))), default=0.0)
    x = [value - left for value in x]
    bends = [
        [x[v] for v in net.chains.get((e.source, e.tensor), [])[: row[e.target] - row[e.source] - 1]] if ok else None
        for e, ok in zip(edges, drawn, strict=True)
    ]
    return Drawing(row, x[: len(widths)], right - left, bends)


def _longest(row: Sequence[int], edges: Sequence[Edge]) -> int:
    """Return how many rows an edge may span, so that there are at most BENDS bends per item plus SPARE_BENDS."""
    chains: dict[tuple[int, int], set[int]] = {}
    for edge in edges:
        chains.setdefault((edge.source, edge.tensor), set()).add(row[edge.target] - row[edge.source])
    bends = [0] * (LONGEST + 1)
    for spans in chains.values():
        before = 1
        for span in sorted(span for span in spans if 1 < span <= LONGEST):
            bends[span] += span - before
            before = span
    total = list(accumulate(bends))
    return max(span for span in range(1, LONGEST + 1) if span == 1 or total[span] <= BENDS * len(row) + SPARE_BENDS)


def _ranks(count: int, edges: Sequence[Edge], late: Sequence[bool]) -> list[int]:
    """Return the longest path from the top; then what depends only on late items moves down to its readers."""
    into: list[list[int]] = [[] for _ in range(count)]
    out: list[list[int]] = [[] for _ in range(count)]
    for edge in edges:
        if edge.source < edge.target:  # a broken model's cycle is not followed
            into[edge.target].append(edge.source)
            out[edge.source].append(edge.target)
    rank = [0] * count
    free = list(late)
    for item in range(count):
        rank[item] = max((rank[source] + 1 for source in into[item]), default=0)
        free[item] = free[item] and all(free[source] for source in into[item])
    for item in reversed(range(count)):
        if free[item] and out[item]:
            rank[item] = min(rank[target] for target in out[item]) - 1
    return rank


def _net(row: Sequence[int], widths: Sequence[float], edges: Sequence[Edge], bend_width: float) -> _Net:
    count = len(widths)
    net = _Net([[] for _ in range(max(row, default=-1) + 1)], [[] for _ in range(count)], [[] for _ in range(count)],
               list(widths))  # fmt: skip
    for item in range(count):
        net.rows[row[item]].append(item)
    for edge in edges:
        chain = net.chains.setdefault((edge.source, edge.tensor), [])
        while len(chain) < row[edge.target] - row[edge.source] - 1:
            _bend(net, chain[-1] if chain else edge.source, row[edge.source] + len(chain) + 1, bend_width)
            chain.append(len(net.widths) - 1)
        steps = row[edge.target] - row[edge.source] - 1
        last = chain[steps - 1] if steps else edge.source
        net.below[last].append(edge.target)
        net.above[edge.target].append(last)
    return net


def _bend(net: _Net, above: int, row: int, width: float) -> None:
    vertex = len(net.widths)
    net.widths.append(width)
    net.above.append([above])
    net.below.append([])
    net.below[above].append(vertex)
    net.rows[row].append(vertex)


def _order(net: _Net) -> None:
    """Sort each row by the mean position of its neighbours, alternating downwards and upwards (barycentre method)."""
    place = [0.0] * len(net.widths)
    for row in net.rows:
        _number(row, place)
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        neighbours = net.above if down else net.below
        for row in net.rows if down else reversed(net.rows):
            if len(row) > 1:
                keys = {v: _mean(neighbours[v], place, place[v]) for v in row}
                row.sort(key=keys.__getitem__)
                _number(row, place)


def _number(row: list[int], place: list[float]) -> None:
    middle = (len(row) - 1) / 2
    for at, vertex in enumerate(row):
        place[vertex] = at - middle


def _mean(vertices: Sequence[int], place: Sequence[float], default: float) -> float:
    return sum(place[v] for v in vertices) / len(vertices) if vertices else default
