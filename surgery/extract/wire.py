"""Extracts a part of a model in wire format: messages of the structure are selected and copied, not parsed.

A faster `surgery.extract.structure` for large models, where selecting is sufficient.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from layerwise._tool.surgery.wire.graph import INITIALIZER, INPUT, NODE, OUTPUT, VALUE, WireGraph
from layerwise._tool.surgery.wire.pieces import Piece, embedded


@dataclass(frozen=True)
class End:
    """A tensor that becomes an input or an output. dtype ("float32") and shape: None is the model's own."""

    name: str
    shape: tuple[int | str | None, ...] | None = None
    dtype: str | None = None


class ExtractedPart:
    """A part of a graph. weights: names of its initializers. can_embed: no other tensors are in files."""

    def __init__(self, graph: WireGraph, nodes: Sequence[int], ins: Sequence[str], outs: Sequence[str]) -> None:
        self._graph, self._nodes, self._ins, self._outs = graph, nodes, ins, outs
        self.can_embed = not any(map(graph.may_refer, nodes))
        needed = {name for i in nodes for name in graph.nodes[i][1].inputs if name} | set(outs)
        self.weights = [name for name in graph.weights if name in needed]

    def pieces(self, folder: Path | None = None) -> list[Piece]:
        """Return it as a ModelProto: large weights stay external, or are embedded (then read from `folder`)."""
        graph, known = self._graph, self._graph.known
        made = {name for i in self._nodes for name in graph.nodes[i][1].outputs if name}
        weights = [graph.bytes_at(graph.weights[name]) for name in self.weights]
        return graph.model([
            *((NODE, [graph.bytes_at(graph.nodes[i][0])]) for i in self._nodes),
            *((INITIALIZER, embedded(data, folder) if folder else [data]) for data in weights),
            *((INPUT, [graph.bytes_at(known[name][0])]) for name in self._ins),
            *((OUTPUT, [graph.bytes_at(known[name][0])]) for name in self._outs),
            *((VALUE, [graph.bytes_at(known[name][0])]) for name in known if name in made and name not in self._outs),
        ])  # fmt: skip


class Parts:
    """Extracts parts of a structure in wire format."""

    def __init__(self, structure: bytes) -> None:
        self.graph = WireGraph(structure)
        self._is_plain = self.graph.is_plain and not self.graph.weights.keys() & self.graph.inputs.keys()

    def names(self) -> set[str]:
        """Return names of the tensors that can be inputs and outputs of a part."""
        return {*self.graph.makers, *self.graph.inputs}

    def extract(self, inputs: Sequence[End] | None, outputs: Sequence[End] | None) -> ExtractedPart | None:
        """Return what computes `outputs` from `inputs` (None: the model's).

        None if `surgery.extract.structure` is needed.
        """
        graph, given = self.graph, [*(inputs or ()), *(outputs or ())]
        ins = [*graph.inputs] if inputs is None else [end.name for end in inputs]
        outs = [*graph.outputs] if outputs is None else [end.name for end in outputs]
        names = self.names()
        if not self._is_plain or any(end.shape or end.dtype or end.name not in names for end in given):
            return None
        nodes = graph.needed(set(ins), outs)
        needed = {name for i in nodes for name in graph.nodes[i][1].inputs if name} | set(outs)
        made = {name for i in nodes for name in graph.nodes[i][1].outputs if name}
        fed = needed <= made | set(ins) | graph.weights.keys()
        if not fed or made & set(ins) or not self._declared(ins, outs) or any(map(graph.has_body, nodes)):
            return None
        return ExtractedPart(graph, nodes, ins, outs)

    def _declared(self, ins: Iterable[str], outs: Iterable[str]) -> bool:
        """Return whether types of all ends are stated, and shapes of inputs."""
        known = self.graph.known
        values = {name: known[name][1] for name in (*ins, *outs) if name in known}
        typed = all(name in values and values[name].kind for name in (*ins, *outs))
        return typed and all(values[name].shape is not None for name in ins)
