"""Maps tensors to the nodes that make them, from a model's bytes, for code that needs nothing else of the graph."""

from typing import NamedTuple

from layerwise._tool.backends.model.wire import BYTES, Source, fields

_GRAPH, _NODE = 7, 1  # fields of ModelProto and GraphProto, onnx.proto
_INPUT, _OUTPUT, _NAME, _OP = 1, 2, 3, 4  # fields of NodeProto


class Maker(NamedTuple):
    """A node: its position in topological order, name, operator."""

    position: int
    name: str
    op: str


def makers(structure: bytes) -> dict[str, Maker] | None:
    """Return the maker of each tensor of the main graph; None if its nodes are not in topological order.

    structure: a serialised ModelProto, weights external. WireError if it is invalid.
    """
    source = Source(structure)
    found: dict[str, Maker] = {}
    reads: list[tuple[int, str]] = []
    position = 0
    for graph in fields(source, 0, source.size):
        if graph.number != _GRAPH or graph.wire != BYTES:
            continue
        for node in fields(source, graph.start, graph.end):
            if node.number == _NODE and node.wire == BYTES:
                texts: dict[int, list[str]] = {_INPUT: [], _OUTPUT: [], _NAME: [""], _OP: [""]}
                for field in fields(source, node.start, node.end):
                    if field.number in texts and field.wire == BYTES:
                        texts[field.number].append(structure[field.start : field.end].decode(errors="replace"))
                maker = Maker(position, texts[_NAME][-1], texts[_OP][-1])
                found.update(dict.fromkeys(filter(None, texts[_OUTPUT]), maker))
                reads += ((position, name) for name in texts[_INPUT])
                position += 1
    late = any(name in found and found[name].position >= reader for reader, name in reads)
    return None if late else found
