"""Constant folding in wire format, if no engine is needed: Constant nodes become weights, fills are written out.

A faster `surgery.folding.structure` for models without bodies, functions and shapes computed in the graph, with the
same result.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from layerwise._tool.backends.model.record_values import read_value
from layerwise._tool.backends.model.records import Node, read_model
from layerwise._tool.surgery.folding.filled import Constant, constant, fill
from layerwise._tool.surgery.folding.options import KEPT, SMALL, FoldOptions
from layerwise._tool.surgery.types.infer import inferred_structure
from layerwise._tool.surgery.wire.graph import INITIALIZER, INPUT, NODE, OUTPUT, VALUE, Field, WireGraph
from layerwise._tool.surgery.wire.pieces import Piece, embedded, whole_bytes

_LEAST_IR = 4  # from this IR version on weights need not be inputs, and one that is may be overridden
_SHAPES = frozenset({"Shape", "Size"})


class Folded(NamedTuple):
    """A folded model. before, nodes: number of nodes before and after; warnings: of shape inference."""

    pieces: list[Piece]
    before: int
    nodes: int
    warnings: list[str]


def fold_bytes(structure: bytes, folder: Path, options: FoldOptions, infer: bool) -> Folded | None:
    """Return the model with constants folded, without unused parts, and with shapes inferred if `infer`.

    folder: base of external locations. None if `surgery.folding.structure` is needed.
    """
    graph = WireGraph(structure)
    constants = _Constants(graph, folder, options)
    return _built(graph, constants, infer) if constants.are_plain() else None


class _Constants:
    """The constants of a graph. new: future weights, by name."""

    def __init__(self, graph: WireGraph, folder: Path, options: FoldOptions) -> None:
        self.graph, self.folder, self.options = graph, folder, options
        self.is_old = graph.head.ir_version < _LEAST_IR
        self.new: dict[str, Constant] = {}
        listed = graph.weights.keys() & graph.inputs.keys()
        self._known = graph.weights.keys() - (set() if self.is_old else listed)

    def are_plain(self) -> bool:
        """Find them; False if anything is beyond this module."""
        there = {*self.graph.inputs, *self.graph.weights}
        passes = self.options.passes
        if not self.graph.is_plain or (passes is not None and passes < 1):
            return False
        for i, (_, node) in enumerate(self.graph.nodes):
            made = set(filter(None, node.outputs))
            if not there.issuperset(filter(None, node.inputs)) or made & there or self.graph.has_body(i):
                return False
            if not self._is_clear(node):
                return False
            there |= made
        return there.issuperset(self.graph.outputs)

    def _is_clear(self, node: Node) -> bool:
        """Return whether the treatment of a node is clear; a constant is then among the new weights."""
        if self.options.shapes and node.op in _SHAPES:
            return False
        if node.op in KEPT or not self._known.issuperset(filter(None, node.inputs)):
            return True
        if node.domain or len(node.outputs) != 1 or not node.outputs[0]:
            return False
        self._known.add(node.outputs[0])
        return self._is_constant(node) if node.op == "Constant" else node.op == "ConstantOfShape" and self._fills(node)

    def _is_constant(self, node: Node) -> bool:
        found = constant(self.graph, node, self.folder)
        if found is not None:
            self.new[node.outputs[0]] = found
        return found is not None

    def _fills(self, node: Node) -> bool:
        """A fill of too many bytes stays a node."""
        shape = self._weight(node.inputs[0]) if len(node.inputs) == 1 else b""
        found = fill(self.graph, node, shape) if 0 < len(shape) <= SMALL else None
        most = SMALL if self.options.threshold is None else self.options.threshold
        if found is not None and found.nbytes <= most:
            self.new[node.outputs[0]] = found.constant(node.outputs[0])
        return found is not None

    def _weight(self, name: str) -> bytes:
        if name in self.new:
            return self.new[name].bare
        span = self.graph.weights.get(name)
        return self.graph.bytes_at(span) if span else b""


def _built(graph: WireGraph, constants: _Constants, infer: bool) -> Folded:
    nodes = graph.needed(constants.new.keys(), graph.outputs)
    made = {name for i in nodes for name in graph.nodes[i][1].outputs}
    read = {name for i in nodes for name in graph.nodes[i][1].inputs if name} | graph.outputs.keys()
    ir_version = _LEAST_IR if constants.is_old else None
    ends = [*_nodes(graph, nodes), *_inputs(graph, read, constants.is_old)]
    weights = _weights(graph, constants, read)
    declared, warnings = _declared(graph.data, made), list[str]()
    if infer:
        bare: list[Field] = [(INITIALIZER, [weight.bare]) for weight in weights]
        structure = whole_bytes(graph.model([*ends, *bare, *declared], ir_version))
        inferred, warnings = inferred_structure(structure)
        declared = declared if warnings else _declared(inferred, made)
    whole: list[Field] = [(INITIALIZER, weight.whole) for weight in weights]
    return Folded(graph.model([*ends, *whole, *declared], ir_version), len(graph.nodes), len(nodes), warnings)


def _nodes(graph: WireGraph, chosen: Sequence[int]) -> list[Field]:
    return [(NODE, [graph.bytes_at(graph.nodes[i][0])]) for i in chosen]


def _inputs(graph: WireGraph, read: set[str], is_old: bool) -> list[Field]:
    """Return inputs, without those that merely list a weight if that has no effect, or has no readers."""
    spans = (s for name, s in graph.inputs.items() if name not in graph.weights or (name in read and not is_old))
    return [(INPUT, [graph.bytes_at(span)]) for span in spans]


def _weights(graph: WireGraph, constants: _Constants, read: set[str]) -> list[Constant]:
    old = {name: graph.bytes_at(span) for name, span in graph.weights.items() if name in read}
    new = [weight for name, weight in constants.new.items() if name in read]
    return [*(Constant(data, embedded(data, constants.folder)) for data in old.values()), *new]


def _declared(structure: bytes, made: set[str]) -> list[Field]:
    """Return outputs, and the declarations of inner tensors that are made."""
    own = read_model(structure).graph
    inner = [(start, end) for start, end in own.values if read_value(structure, start, end).name in made]
    found: list[Field] = [(OUTPUT, [structure[start:end]]) for start, end in own.outputs]
    return [*found, *((VALUE, [structure[start:end]]) for start, end in inner)]
