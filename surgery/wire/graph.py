"""A structure's main graph in wire format: its messages by name, and models assembled from such messages.

For code that only selects, drops and adds messages: it avoids the onnx package, whose import takes longer than
everything else. Field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model import wire
from layerwise._tool.backends.model.record_values import Value, read_initializer, read_value
from layerwise._tool.backends.model.records import Node, Span, read_model, read_node
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.model.wire import BYTES, Source, WireError, fields, put_int
from layerwise._tool.surgery.wire.pieces import Piece, joined, message

GRAPH = 7  # of ModelProto
NODE, INITIALIZER, SPARSE, INPUT, OUTPUT, VALUE = 1, 5, 15, 11, 12, 13  # of GraphProto
_REPLACED = frozenset({NODE, INITIALIZER, SPARSE, INPUT, OUTPUT, VALUE})
_BODY, _BODIES = 6, 11  # AttributeProto.g and graphs
_IR, _VERSION, _TEXTS = 1, 5, (2, 3, 4, 6)  # of ModelProto
Field = tuple[int, Sequence[Piece]]
"""A field of a graph: its number and its message."""


@contextmanager
def reading(path: object) -> Iterator[None]:
    """Raise BadFile, naming the model at `path`, if its bytes do not fit the format."""
    try:
        yield
    except WireError as error:
        raise BadFile(path, f"damaged ONNX model: {error}") from error


class WireGraph:
    """The main graph of a structure.

    weights: initializers by name, in order. known: declarations of tensors. makers: the node that makes a tensor.
    is_plain: neither functions nor sparse weights, and no duplicate names.
    """

    def __init__(self, structure: bytes) -> None:
        self.data = structure
        self.head = read_model(structure)
        graph = self.head.graph
        self.nodes: list[tuple[Span, Node]] = [(span, read_node(structure, *span)) for span in graph.nodes]
        self.weights: dict[str, Span] = {self.tensor(span).name: span for span in graph.initializers}
        self.inputs: dict[str, Span] = {read_value(structure, *span).name: span for span in graph.inputs}
        self.outputs: dict[str, Span] = {read_value(structure, *span).name: span for span in graph.outputs}
        lists = (graph.initializers, graph.inputs, graph.outputs)
        unique = list(map(len, lists)) == list(map(len, (self.weights, self.inputs, self.outputs)))
        self.is_plain = unique and not (self.head.functions or graph.sparse)

    @cached_property
    def known(self) -> dict[str, tuple[Span, Value]]:
        """Declarations of each tensor; inputs take precedence over outputs, outputs over inner values."""
        graph, found = self.head.graph, dict[str, tuple[Span, Value]]()
        for span in (*graph.values, *graph.outputs, *graph.inputs):
            value = read_value(self.data, *span)
            found[value.name] = (span, value)
        return found

    @cached_property
    def makers(self) -> dict[str, int]:
        """Tensor -> position of its node."""
        return {name: i for i, (_, node) in enumerate(self.nodes) for name in node.outputs if name}

    def tensor(self, span: Span) -> TensorRecord:
        """Return a TensorProto without its values."""
        return read_initializer(self.data, span)

    def bytes_at(self, span: Span) -> bytes:
        """Return the message at that span."""
        return self.data[span[0] : span[1]]

    def has_body(self, i: int) -> bool:
        """Return whether a node is an If, a Loop or the like."""
        spans = self.nodes[i][1].attributes
        return any(field.number in (_BODY, _BODIES) for span in spans for field in fields(Source(self.data), *span))

    def may_refer(self, i: int) -> bool:
        """Return whether an attribute of a node may be a tensor with values in a file."""
        return b"location" in self.bytes_at(self.nodes[i][0])

    def needed(self, ins: Collection[str], outs: Iterable[str]) -> list[int]:
        """Return positions of the nodes that compute `outs` from `ins`, in file order."""
        chosen, waiting = set[int](), list(outs)
        while waiting:
            name = waiting.pop()
            i = self.makers.get(name)
            if name not in ins and i is not None and i not in chosen:
                chosen.add(i)
                waiting += self.nodes[i][1].inputs
        return sorted(chosen)

    def model(self, own: Iterable[Field], ir_version: int | None = None) -> list[Piece]:
        """Return the model with these fields replacing the graph's nodes, weights, inputs, outputs and values."""
        graph = b"".join(self.data[field.at : field.end] for field in self._graph_rest())
        rest = b"".join(self.data[f.at : f.end] for f in self._rest() if f.number != _IR or ir_version is None)
        made = [piece for number, pieces in own for piece in message(number, pieces)]
        head = rest if ir_version is None else put_int(_IR, ir_version) + rest
        return joined([head, *message(GRAPH, joined([graph, *made]))])

    def _rest(self) -> Iterator[wire.Field]:
        """Return the model except its graph, and except fields without effect."""
        for field in fields(Source(self.data), 0, len(self.data)):
            empty = field.number in _TEXTS and field.end == field.start
            if field.number != GRAPH and not empty and (field.number != _VERSION or field.value):
                yield field

    def _graph_rest(self) -> Iterator[wire.Field]:
        """Return the graph's name and the like."""
        for graph in fields(Source(self.data), 0, len(self.data)):
            if graph.number == GRAPH and graph.wire == BYTES:
                inner = fields(Source(self.data), graph.start, graph.end)
                yield from (field for field in inner if field.number not in _REPLACED)
