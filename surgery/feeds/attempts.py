"""Which sizes of dynamic dimensions to try, likely ones first."""

import math
from collections.abc import Iterator, Mapping
from itertools import islice

from layerwise._tool.surgery.feeds.graph import FeedGraph, Value, attribute
from layerwise._tool.surgery.feeds.stem import Stem

_SQUARES = (224, 256, 384, 512, 640, 32, 28, 299, 96, 1024)
_LENGTHS = (32, 64, 128, 77, 256, 512)
_COUNTED = frozenset({
    "Range", "Add", "Sub", "Unsqueeze", "Squeeze", "Cast", "Expand", "Reshape", "CumSum", "Slice", "Shape", "Gather",
    "Mul", "Identity", "Concat",
})  # fmt: skip
_MOST_ATTEMPTS = 16
Sizes = dict[str, int]


def attempts(graph: FeedGraph, stems: Mapping[str, Stem], base: Sizes) -> Iterator[tuple[Sizes, bool]]:
    """Yield sizes of kinds of dimensions, and whether symbols of one kind get sizes of their own."""
    return islice(_attempts(graph, stems, base), _MOST_ATTEMPTS)


def _attempts(graph: FeedGraph, stems: Mapping[str, Stem], base: Sizes) -> Iterator[tuple[Sizes, bool]]:
    yield base, True
    yield base, False
    kinds = {kind for found in stems.values() for kind in found.kinds.values()}
    rows = _added_rows(graph)
    stride = max((found.stride for found in stems.values()), default=1)
    if "height" in kinds:
        sides = [stride * math.isqrt(n) for count in rows for n in (count, count - 1, count - 2) if _is_square(n)]
        for side in dict.fromkeys([*sides, base["height"], *_SQUARES]):
            yield base | {"height": side, "width": side}, False
        return
    for count in rows:
        yield base | {"sequence": count, "encoder": count, "frames": count * stride}, False
    for length in _LENGTHS:
        yield base | {"sequence": length, "encoder": length, "frames": length * stride}, False


def _is_square(count: int) -> bool:
    return count > 3 and math.isqrt(count) ** 2 == count


def _added_rows(graph: FeedGraph) -> list[int]:
    """Rows of tables that are added as they are: as many positions are asked for."""
    found: dict[int, None] = {}
    for node in graph.model.graph.node:
        if node.op_type != "Add":
            continue
        for name in node.input:
            table = graph.table(Value(0, name))
            if table is not None and table.weight and len(table.dims) >= 2 and (rows := table.dims[-2]) and rows > 1:
                found[rows] = None
    return list(found)[:6]


def position_rows(graph: FeedGraph) -> int | None:
    """Rows of the smallest table that is indexed by counted positions; None where there is none."""
    rows = [
        found
        for node in graph.model.graph.node
        if node.op_type == "Gather" and not attribute(node, "axis", 0) and len(node.input) > 1
        if (found := _indexed_rows(graph, Value(0, node.input[0]))) and _counts(graph, Value(0, node.input[1]))
    ]
    return min(rows, default=None)


def _indexed_rows(graph: FeedGraph, value: Value) -> int | None:
    table = graph.table(value)
    return table.dims[0] if table is not None and table.weight and len(table.dims) == 2 else None


def _counts(graph: FeedGraph, value: Value) -> bool:
    """Whether a Range or a CumSum makes indices, with nothing that bounds them."""
    waiting, seen, counted = [value], set[Value](), False
    while waiting and len(seen) < 100:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        made = graph.makers.get(at)
        if made is None:
            continue
        node, scope = made
        if node.op_type not in _COUNTED:
            if node.op_type not in ("Constant", "ConstantOfShape"):
                return False
            continue
        counted |= node.op_type in ("Range", "CumSum")
        if node.op_type != "Shape":
            waiting += (graph.value(scope, name) for name in node.input if name)
    return counted
