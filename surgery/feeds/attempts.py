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
    kinds = {kind for found in stems.values() for kind in found.kinds.values()}
    rows, stride = _added_rows(graph), max((found.stride for found in stems.values()), default=1)
    asked = list(_asked(rows, stride, base, images="height" in kinds))
    yield from ((sizes, False) for sizes in asked)
    yield base, True
    yield base, False
    if "height" in kinds:
        for side in (base["height"], *_SQUARES):
            yield base | {"height": side, "width": side}, False
        return
    for length in _LENGTHS:
        yield base | {"sequence": length, "encoder": length, "frames": length * stride}, False


def _asked(rows: list[int], stride: int, base: Sizes, *, images: bool) -> Iterator[Sizes]:
    """Sizes for which as many positions are made as are added: with a class token or two, of an image."""
    for count in rows:
        if not images:
            yield base | {"sequence": count, "encoder": count, "frames": count * stride}
            continue
        for side in [stride * math.isqrt(n) for n in (count, count - 1, count - 2) if _is_square(n)][:1]:
            yield base | {"height": side, "width": side}


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
            if table is not None and table.weight and _of_positions(table.dims) and (rows := table.dims[-2]):
                found[rows] = None
    return list(found)[:6]


def _of_positions(dims: tuple[int | None, ...]) -> bool:
    """Whether these are [positions, width], or that in a batch of one."""
    many = len(dims) in (2, 3) and all(dim is not None and dim > 1 for dim in dims[-2:])
    return many and (len(dims) == 2 or dims[0] == 1)


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
