"""Where the values of an input go: what they index, count or mask, followed through operators that keep them."""

from collections.abc import Iterator
from typing import NamedTuple

from layerwise._tool.surgery.feeds.graph import FeedGraph, IndexedTable, Use, Walk, attribute

_KEEP = frozenset({
    "Identity", "Cast", "CastLike", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Transpose", "Expand", "Tile",
    "Slice", "Split", "Dropout", "Clip", "Pad", "Gather", "GatherElements", "GatherND", "Mod", "Min", "Max",
    "SplitToSequence", "ConcatFromSequence", "Concat", "ScatterND", "ScatterElements", "Compress", "DequantizeLinear",
    "Trilu",
})  # fmt: skip
_DATA_SLOTS = {"Where": (1, 2), "ScatterND": (0, 2), "ScatterElements": (0, 2)}
_ANY_SLOT = frozenset({"Concat", "Min", "Max"})
_INDICES = {
    (op, 1)
    for op in (
        "Gather",
        "GatherElements",
        "GatherND",
        "ScatterND",
        "ScatterElements",
        "Scatter",
        "NegativeLogLikelihoodLoss",
        "SoftmaxCrossEntropyLoss",
        "ArrayFeatureExtractor",
    )
}
_CACHE_OF_POSITIONS = {
    ("", "RotaryEmbedding", 3): 1, ("com.microsoft", "RotaryEmbedding", 1): 2,
    ("com.microsoft", "GroupQueryAttention", 9): 7,
}  # fmt: skip
"""Domain, operator and input of positions -> the input that has a row of cosines for each."""
POSITIONED = frozenset(op for _, op, _ in _CACHE_OF_POSITIONS)
_MOST = 20_000  # tensors looked at for one input


class Indexing(NamedTuple):
    """An input's values index `table` along one axis of `rows`: low…high are the valid ones."""

    table: str
    rows: int
    low: int
    high: int
    weight: bool = False
    op: str = "Gather"


class Traced(NamedTuple):
    """What an input does. indices: what it indexes. uses: where its values end up, by the first node that changes them,
    with the shift that was added before.
    """

    indices: list[Indexing]
    uses: list[Use]

    def at(self, *places: tuple[str, int]) -> Use | None:
        """A use at one of these (operator, input) places."""
        return next((use for use in self.uses if (use.node.op_type, use.slot) in places), None)

    def by(self, *ops: str) -> Use | None:
        """A use by one of these operators."""
        return next((use for use in self.uses if use.node.op_type in ops), None)


def traced(graph: FeedGraph, name: str) -> Traced:
    """Follow an input of the main graph."""
    found = Traced([], [])
    walk = Walk(graph, name, (0, 0), _MOST)
    for _, use, (least, most) in walk:
        index = _index(graph, use, least, most)
        shift = _shift(graph, use) if index is None else None
        if index is not None:
            found.indices.append(index)
        elif shift is not None:
            walk.beyond(use, (least + shift[0], most + shift[1]))
        elif _keeps(use):
            walk.beyond(use, (least, most))
        else:
            found.uses.append(use)
    return found


def _keeps(use: Use) -> bool:
    op, slot = use.node.op_type, use.slot
    if op in _DATA_SLOTS:
        return slot in _DATA_SLOTS[op]
    return op in _KEEP and (slot == 0 or op in _ANY_SLOT)


def _shift(graph: FeedGraph, use: Use) -> tuple[int, int] | None:
    """Least and largest of a constant that is added to an input's integers; None where none is."""
    if use.node.op_type not in ("Add", "Sub") or len(use.node.input) != 2:
        return None
    if use.node.op_type == "Sub" and use.slot == 1:
        return None
    constant = graph.constant(graph.read_by(use, 1 - use.slot))
    if constant is None or constant.dtype.kind not in "iu" or not constant.size:
        return None
    least, most = int(constant.min()), int(constant.max())
    return (least, most) if use.node.op_type == "Add" else (-most, -least)


def _index(graph: FeedGraph, use: Use, least: int, most: int) -> Indexing | None:
    """What a use indexes, for values to which least…most was added."""
    for table, rows in _rows(graph, use):
        return Indexing(table.name, rows, max(0, -least), max(0, rows - 1 - most), table.weight, use.node.op_type)
    if (use.node.op_type, use.slot) in _INDICES:  # of what is not known: the first two, as Polygraphy's
        return Indexing("", 2, max(0, -least), max(0, 1 - most), False, use.node.op_type)
    return None


def _rows(graph: FeedGraph, use: Use) -> Iterator[tuple[IndexedTable, int]]:
    node, slot = use.node, use.slot
    data = graph.table(graph.read_by(use, 0))
    if node.op_type in ("Gather", "GatherElements", "ScatterElements", "Scatter", "GatherBlockQuantized") and slot == 1:
        axis = attribute(node, "gather_axis" if node.op_type == "GatherBlockQuantized" else "axis", 0)
        yield from _along(data, axis)
    elif node.op_type in ("GatherND", "ScatterND") and slot == 1:
        yield from _along_first(graph, use, data)
    elif node.op_type == "OneHot" and slot == 0:
        depth = graph.constant(graph.read_by(use, 1))
        if depth is not None and depth.size:
            yield IndexedTable(node.name or "OneHot", (), False), int(depth.reshape(-1)[0])
    elif node.op_type in ("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss") and slot == 1:
        yield from _along(data, 1)
    elif node.op_type == "ArrayFeatureExtractor" and slot == 1:
        yield from _along(data, -1)
    elif node.op_type == "EmbedLayerNormalization" and slot in (0, 1, 8):
        table = graph.table(graph.read_by(use, {0: 2, 1: 4, 8: 3}[slot]))
        yield from _along(table, 0)
    elif node.op_type == "RoiAlign" and slot == 2:
        yield from _along(data, 0)
    elif (cache := _CACHE_OF_POSITIONS.get((node.domain.removeprefix("ai.onnx"), node.op_type, slot))) is not None:
        yield from _along(graph.table(graph.read_by(use, cache)), 0)


def _along(data: IndexedTable | None, axis: int) -> Iterator[tuple[IndexedTable, int]]:
    if data is not None and -len(data.dims) <= axis < len(data.dims):
        rows = data.dims[axis]
        if rows:
            yield data, rows


def _along_first(graph: FeedGraph, use: Use, data: IndexedTable | None) -> Iterator[tuple[IndexedTable, int]]:
    """The smallest of the dimensions that tuples of indices go over."""
    places = graph.dims(graph.read_by(use, 1))
    count = (places[-1] if places else None) or 1
    batch = attribute(use.node, "batch_dims", 0)
    if data is not None:
        dims = [dim for dim in data.dims[batch : batch + count] if dim]
        if dims:
            yield data, min(dims)
