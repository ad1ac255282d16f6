"""Extraction on the wire: fields of the serialised structure are picked out and put together, nothing is parsed.

This is `surgery.extract` where there is nothing to it but picking, for large models: it does without the onnx package,
whose import takes longer than all the rest. Field numbers: onnx.proto.
"""

from collections.abc import Iterable, Sequence

from backends.record_values import Value, read_initializer, read_value
from backends.records import Node, Span, read_model, read_node
from backends.wire import BYTES, Source, fields, put_bytes
from surgery.ends import End

_GRAPH = 7
_NODE, _INITIALIZER, _SPARSE, _INPUT, _OUTPUT, _VALUE = 1, 5, 15, 11, 12, 13
_BODY, _BODIES = 6, 11  # AttributeProto.g and graphs


class Parts:
    """The main graph of a structure, by name. weights: initializers; known: what is declared of a tensor."""

    def __init__(self, structure: bytes) -> None:
        self.data = structure
        head = read_model(structure)
        graph = head.graph
        self.nodes: list[tuple[Span, Node]] = [(span, read_node(structure, *span)) for span in graph.nodes]
        self.weights = {read_initializer(structure, span).name: span for span in graph.initializers}
        self.known: dict[str, tuple[Span, Value]] = {}
        for span in (*graph.values, *graph.outputs, *graph.inputs):
            value = read_value(structure, *span)
            self.known[value.name] = (span, value)
        self.inputs = [read_value(structure, *span).name for span in graph.inputs]
        self.outputs = [read_value(structure, *span).name for span in graph.outputs]
        self.makers = {name: i for i, (_, node) in enumerate(self.nodes) for name in node.outputs if name}
        self.is_plain = not (head.functions or graph.sparse or self.weights.keys() & set(self.inputs))

    def names(self) -> set[str]:
        """Names of the tensors that can be inputs and outputs of a part."""
        return {*self.makers, *self.inputs}

    def extract(self, inputs: Sequence[End] | None, outputs: Sequence[End] | None) -> tuple[bytes, list[str]] | None:
        """Return the part as a serialised ModelProto, and the weights in it; None where `surgery.extract` is needed."""
        given = [*(inputs or ()), *(outputs or ())]
        ins = self.inputs if inputs is None else [end.name for end in inputs]
        outs = self.outputs if outputs is None else [end.name for end in outputs]
        if not self.is_plain or any(end.shape or end.dtype or end.name not in self.names() for end in given):
            return None
        nodes = self._needed(ins, outs)
        needed = {name for i in nodes for name in self.nodes[i][1].inputs if name} | set(outs)
        made = {name for i in nodes for name in self.nodes[i][1].outputs if name}
        fed = needed <= made | set(ins) | self.weights.keys()
        if not fed or made & set(ins) or not self._declared(ins, outs) or any(self._has_body(i) for i in nodes):
            return None
        return self._built(nodes, ins, outs, needed, made)

    def _needed(self, ins: Iterable[str], outs: Iterable[str]) -> list[int]:
        """Positions of the nodes between, in the file's order."""
        ends, chosen, waiting = set(ins), set[int](), list(outs)
        while waiting:
            name = waiting.pop()
            i = self.makers.get(name)
            if name not in ends and i is not None and i not in chosen:
                chosen.add(i)
                waiting += self.nodes[i][1].inputs
        return sorted(chosen)

    def _declared(self, ins: Iterable[str], outs: Iterable[str]) -> bool:
        """Whether types of all ends are stated, and shapes of inputs."""
        values = {name: self.known[name][1] for name in (*ins, *outs) if name in self.known}
        typed = all(name in values and values[name].kind for name in (*ins, *outs))
        return typed and all(values[name].shape is not None for name in ins)

    def _has_body(self, i: int) -> bool:
        spans = self.nodes[i][1].attributes
        return any(field.number in (_BODY, _BODIES) for span in spans for field in fields(Source(self.data), *span))

    def _built(
        self, nodes: Sequence[int], ins: Sequence[str], outs: Sequence[str], needed: set[str], made: set[str]
    ) -> tuple[bytes, list[str]]:
        weights = [name for name in self.weights if name in needed]
        inner = [name for name in self.known if name in made and name not in outs]
        spans = [
            *((_NODE, self.nodes[i][0]) for i in nodes),
            *((_INITIALIZER, self.weights[name]) for name in weights),
            *((_INPUT, self.known[name][0]) for name in ins),
            *((_OUTPUT, self.known[name][0]) for name in outs),
            *((_VALUE, self.known[name][0]) for name in inner),
        ]
        own = [put_bytes(number, self.data[start:end]) for number, (start, end) in spans]
        graph = put_bytes(_GRAPH, b"".join([*self._graph_rest(), *own]))
        return b"".join([*self._rest(), graph]), weights

    def _rest(self) -> list[bytes]:
        """All of the model but its graph."""
        whole = fields(Source(self.data), 0, len(self.data))
        return [self.data[field.at : field.end] for field in whole if field.number != _GRAPH]

    def _graph_rest(self) -> list[bytes]:
        """The graph's name and the like."""
        replaced = (_NODE, _INITIALIZER, _SPARSE, _INPUT, _OUTPUT, _VALUE)
        whole = fields(Source(self.data), 0, len(self.data))
        graphs = [field for field in whole if field.number == _GRAPH and field.wire == BYTES]
        inner = [field for graph in graphs for field in fields(Source(self.data), graph.start, graph.end)]
        return [self.data[field.at : field.end] for field in inner if field.number not in replaced]
