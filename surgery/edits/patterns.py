"""Edits of many nodes at once, found by operator chains or by the tensors around them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import onnx
from onnx import helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.text import Called, in_full, shown
from layerwise._tool.surgery.edits.base import Edit, GraphEdit, listed, place
from layerwise._tool.surgery.edits.nodes import is_op
from layerwise._tool.surgery.edits.operands import Operand, add_operand, attributes
from layerwise._tool.surgery.extract.structure import check_defined
from layerwise._tool.surgery.model.structure import Graph, Nodes, Structure, changed
from layerwise._tool.surgery.rewrite.rewiring import making, reading, reread, without_values
from layerwise._tool.surgery.rewrite.tidy import cleaned, cleaned_model, in_order, unmade


def insert_between(
    model: Structure,
    inputs: Sequence[str],
    outputs: Sequence[str],
    op: str,
    name: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Structure:
    """Return the model in which a node `op` computes `outputs` from `inputs`; what did so before is removed if unused.

    An output that is also an input becomes a separate tensor, which all readers of the input read instead: the node
    is inserted on that tensor. A graph output keeps its name. attrs: numbers, text and lists of them.
    UsageError for an unknown tensor; LayerwiseError if an input depends on an output.
    """
    check_defined(model, (*inputs, *outputs))
    reads, makes = list(inputs), list(outputs)
    for i, tensor in enumerate(outputs):
        if tensor in inputs:
            model, before, after = _split(model, tensor)
            reads = [before if other == tensor else other for other in reads]
            makes[i] = after
    rest = unmade(model, makes)
    node = helper.make_node(op, reads, makes, name or rest.fresh_node(f"{op}_inserted"))
    node.attribute.extend(attributes(attrs or {}, op))
    return _finished(rest, node)


def _finished(model: Structure, node: onnx.NodeProto) -> Structure:
    place = {name: i for i, other in enumerate(model.nodes) for name in other.output}
    after = max((place[name] + 1 for name in node.input if name in place), default=0)
    model = model.with_(nodes=(*model.nodes[:after], node, *model.nodes[after:]))
    return in_order(cleaned_model(model))


def _split(model: Structure, tensor: str) -> tuple[Structure, str, str]:
    """Split a tensor in two: one for its maker, one for its readers."""
    if not model.read_outside(tensor) or tensor not in model.lookups.makers:
        after = model.fresh(f"{tensor}_inserted")
        outputs = tuple(changed(v, name=after) if v.name == tensor else v for v in model.outputs)
        return reread(model, {tensor: after}).with_(outputs=outputs), tensor, after
    before = model.fresh(f"{tensor}_inserted")
    maker = model.lookups.makers[tensor]
    split = model.replaced({id(maker): [making(maker, {tensor: before})]})
    return split, before, tensor


class ReplacePattern(GraphEdit, frozen=True, tag="replace-pattern", kw_only=True):
    """Replace each chain of operators ("Op" or "domain:Op", each the previous one's only reader) by a node or a
    subgraph.

    inputs: of the new node; "$1.0" stands for input 0 of the second node of the chain. Default: the computed tensors
    that the chain reads from outside. subgraph: a serialised ModelProto instead of a node; its inputs and outputs map
    to these and to the last node's outputs. at: only chains that end in one of these nodes.
    """

    pattern: tuple[str, ...]
    op: str = ""
    domain: str = ""
    attributes: dict[str, Any] = {}
    inputs: tuple[Operand, ...] = ()
    subgraph: bytes = b""
    at: tuple[str, ...] = ()

    def describe(self, called: Called = in_full) -> str:
        by = shown(self.op, 60) if self.op else "a subgraph"
        return f"replace {' → '.join(shown(op, 40) for op in self.pattern)} by {by}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        if not self.pattern or bool(self.op) == bool(self.subgraph):
            raise LayerwiseError("give a pattern, and either an operator or a subgraph")
        chains = list(matches(graph, self.pattern))
        if self.at:
            ends = {id(graph.node(name)) for name in self.at}
            chains = [chain for chain in chains if id(chain[-1]) in ends]
        if not chains:
            raise LayerwiseError("nothing matches")
        body = parse_model(self.subgraph, "subgraph").graph if self.subgraph else None
        instead: dict[int, list[onnx.NodeProto]] = {id(node): [] for chain in chains for node in chain}
        for chain in chains:
            graph, instead[id(chain[-1])] = self._made(graph, chain, body)
        inner = [name for chain in chains for node in chain[:-1] for name in node.output]
        return cleaned(without_values(graph.replaced(instead), inner))

    def _made(self, graph: Graph, chain: Nodes, body: onnx.GraphProto | None) -> tuple[Graph, list[onnx.NodeProto]]:
        """Return the replacement of a chain's last node."""
        last, names = chain[-1], []
        for number, operand in enumerate(self.inputs or tuple(_read(graph, chain))):
            graph, name = add_operand(graph, _resolved(operand, chain), f"{last.output[0]}_constant_{number}")
            names.append(name)
        if body is not None:
            return pasted(graph, body, names, last.output, last.name or last.output[0])
        node = helper.make_node(self.op, names, last.output, last.name or None, domain=self.domain or None)
        node.attribute.extend(attributes(self.attributes, self.op, self.domain))
        return graph, [node]


class InsertBetween(Edit, frozen=True, tag="insert-between", kw_only=True):
    """Replace everything that computes `outputs` from `inputs` by one node, in the main graph."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    op: str
    name: str = ""
    attributes: dict[str, Any] = {}

    def describe(self, called: Called = in_full) -> str:
        return f"put {shown(self.op, 60)} between {listed(self.inputs, called)} and {listed(self.outputs, called)}"

    def _applied(self, structure: Structure) -> Structure:
        return insert_between(structure, self.inputs, self.outputs, self.op, self.name, self.attributes)


def matches(graph: Graph, pattern: Sequence[str]) -> Iterator[Nodes]:
    """Yield chains of nodes, each reading the previous one, whose inner outputs have no other readers; none overlap."""
    used: set[int] = set()
    for last in graph.nodes:
        chain = _chain(graph, last, pattern, used)
        if chain:
            used.update(map(id, chain))
            yield chain


def pasted(
    graph: Graph, body: onnx.GraphProto, inputs: Sequence[str], outputs: Sequence[str], label: str
) -> tuple[Graph, list[onnx.NodeProto]]:
    """Return the graph with the weights of `body`, and its nodes, connected to these ends, with new names inside.

    LayerwiseError if their numbers differ, or an output of `body` is made by none of its nodes.
    """
    if len(body.input) != len(inputs) or len(body.output) != len(outputs):
        sides = f"{len(inputs)} inputs and {len(outputs)} outputs"
        raise LayerwiseError(f"the subgraph has {len(body.input)} inputs and {len(body.output)} outputs, not {sides}")
    names = dict(zip((value.name for value in body.input), inputs, strict=True))
    given = dict(zip((value.name for value in body.output), outputs, strict=True))
    if not given.keys() <= {name for node in body.node for name in node.output}:
        raise LayerwiseError("an output of the subgraph is made by none of its nodes")
    weights = dict(graph.initializers)
    for tensor in body.initializer:
        names[tensor.name] = graph.fresh(f"{label}/{tensor.name}", weights)
        weights[names[tensor.name]] = changed(tensor, name=names[tensor.name])
    for name in (name for node in body.node for name in node.output if name):
        names[name] = given.get(name) or graph.fresh(f"{label}/{name}", names.values())
    nodes: list[onnx.NodeProto] = []
    for node in body.node:
        name = graph.fresh_node(f"{label}/{node.name or node.op_type}", (other.name for other in nodes))
        nodes.append(changed(making(reading(node, names), names), name=name))
    return graph.with_(initializers=weights), nodes


def _chain(graph: Graph, last: onnx.NodeProto, pattern: Sequence[str], used: set[int]) -> Nodes | None:
    if id(last) in used or not is_op(last, pattern[-1:]):
        return None
    chain = [last]
    for op in reversed(pattern[:-1]):
        before = next((node for node in _before(graph, chain[-1]) if is_op(node, [op]) and id(node) not in used), None)
        if before is None:
            return None
        chain.append(before)
    return tuple(reversed(chain))


def _before(graph: Graph, node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Return the nodes that only `node` reads."""
    for name in node.input:
        maker = graph.lookups.makers.get(name)
        if maker is None or any(graph.read_outside(output) for output in maker.output):
            continue
        readers = {id(reader) for output in maker.output for reader in graph.lookups.readers.get(output, ())}
        if readers == {id(node)}:
            yield maker


def _read(graph: Graph, chain: Nodes) -> Iterator[str]:
    """Return what a chain reads from outside it, without constants."""
    made = {name for node in chain for name in node.output}
    seen: set[str] = set()
    for name in (name for node in chain for name in node.input if name):
        maker = graph.lookups.makers.get(name)
        constant = name in graph.initializers or (maker is not None and maker.op_type == "Constant")
        if name not in made and name not in seen and not constant:
            seen.add(name)
            yield name


def _resolved(operand: Operand, chain: Nodes) -> Operand:
    if not isinstance(operand, str) or not operand.startswith("$"):
        return operand
    node, _, place = operand[1:].partition(".")
    if node.isdecimal() and place.isdecimal() and int(node) < len(chain) and int(place) < len(chain[int(node)].input):
        return str(chain[int(node)].input[int(place)])
    raise LayerwiseError(f"{shown(operand, 40)!r} is no input of {listed(n.op_type for n in chain)}")
