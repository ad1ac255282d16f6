"""Edits of single nodes: delete, bypass, insert, add, replace."""

from collections.abc import Sequence
from typing import Any

import onnx
from onnx import helper

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.reads import reads
from layerwise._tool.backends.text import Called, in_full, shown
from layerwise._tool.surgery.edits.base import Edit, GraphEdit, listed, place
from layerwise._tool.surgery.edits.operands import Operand, add_operand, attributes
from layerwise._tool.surgery.model.structure import AnyGraph, Graph, Structure
from layerwise._tool.surgery.rewrite.rewiring import (
    bypassed,
    in_time,
    making,
    placed,
    reading,
    without_unread,
    without_values,
)
from layerwise._tool.surgery.rewrite.tidy import map_bodies


class DeleteNodes(GraphEdit, frozen=True, tag="delete-node", kw_only=True):
    """Delete nodes; their readers read the nodes' inputs instead.

    reconnect: output -> the input that replaces it; others are replaced by the first computed input, of the same
    type if types are declared. Graph outputs keep their names. leave: do not reconnect readers.
    """

    nodes: tuple[str, ...]
    reconnect: dict[str, str] = {}
    leave: bool = False

    def describe(self, called: Called = in_full) -> str:
        return f"delete {listed(self.nodes, called)}{' without reconnecting' if self.leave else ''}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        nodes = list({id(node): node for node in map(graph.node, self.nodes)}.values())
        if self.leave:
            return without_unread(graph.replaced({id(node): [] for node in nodes}), nodes)
        return bypassed(graph, nodes, self.reconnect)


class Bypass(Edit, frozen=True, tag="bypass", kw_only=True):
    """Delete every node of some operators ("Op" or "domain:Op"), in bodies too; their readers read their inputs."""

    ops: tuple[str, ...]

    def describe(self, called: Called = in_full) -> str:
        return f"bypass all {listed(self.ops, called)}"

    def _applied(self, structure: Structure) -> Structure:
        count = [0]

        def within(graph: AnyGraph) -> AnyGraph:
            graph = map_bodies(graph, within)
            nodes = [node for node in graph.nodes if is_op(node, self.ops)]
            count[0] += len(nodes)
            return bypassed(graph, nodes, {}) if nodes else graph

        result = within(structure)
        if not count[0]:
            raise LayerwiseError("no node is of that type")
        return result


class InsertNode(GraphEdit, frozen=True, tag="insert-node", kw_only=True):
    """Insert a node on a tensor: it reads the tensor, and the tensor's readers read its output.

    operands: its other inputs; position: the tensor's index among its inputs. readers: nodes that read the new
    tensor, all by default; then a graph output comes from the new node too, under its old name.
    """

    tensor: str
    op: str
    name: str = ""
    domain: str = ""
    attributes: dict[str, Any] = {}
    operands: tuple[Operand, ...] = ()
    position: int = 0
    readers: tuple[str, ...] = ()

    def describe(self, called: Called = in_full) -> str:
        for_whom = f" for {listed(self.readers, called)}" if self.readers else ""
        return f"insert {shown(self.op, 60)} on {called(self.tensor)}{for_whom}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        if not graph.defines(self.tensor):
            raise LayerwiseError("this graph does not define that tensor")
        label = graph.fresh_node(self.name or f"{self.tensor}_{self.op}")
        graph, others = _operands(graph, self.operands, label)
        inner = graph.fresh(f"{self.tensor}_{self.op}")
        known = graph.lookups
        readers = [graph.node(name) for name in self.readers] or list(known.readers.get(self.tensor, ()))
        if any(self.tensor not in reads(node) for node in readers):
            raise LayerwiseError("one of the readers does not read that tensor")
        inputs = [*others[: self.position], self.tensor, *others[self.position :]]
        if self.readers or not graph.read_outside(self.tensor):
            new = _node(self, inputs, [inner], label)
            graph = graph.replaced({id(node): [reading(node, {self.tensor: inner})] for node in readers})
            return placed(graph, new)
        maker = known.makers.get(self.tensor)
        if maker is None:
            raise LayerwiseError("the tensor is input and output of the graph at once")
        inputs = [inner if name == self.tensor else name for name in inputs]
        graph = graph.replaced({id(maker): [making(maker, {self.tensor: inner})]})
        return placed(without_values(graph, [self.tensor]), _node(self, inputs, [self.tensor], label))


class AddNode(GraphEdit, frozen=True, tag="add-node", kw_only=True):
    """Add a node that makes new tensors without readers."""

    op: str
    inputs: tuple[Operand, ...]
    outputs: tuple[str, ...]
    name: str = ""
    domain: str = ""
    attributes: dict[str, Any] = {}

    def describe(self, called: Called = in_full) -> str:
        return f"add {shown(self.op, 60)} that makes {listed(self.outputs, called)}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        taken = [name for name in self.outputs if name and graph.defines(name)]
        if taken:
            raise LayerwiseError(f"tensor {shown(taken[0], 120)!r} is there already")
        label = self.name or graph.fresh_node(f"{self.op}_{next(filter(None, self.outputs), '')}")
        if label in graph.lookups.by_name:
            raise LayerwiseError("a node has that name already")
        graph, inputs = _operands(graph, self.inputs, label)
        return placed(graph, _node(self, inputs, self.outputs, label))


class ReplaceNode(GraphEdit, frozen=True, tag="replace-node", kw_only=True):
    """Replace a node by another. inputs and outputs: None keeps them; outputs may be a subset, not others."""

    node: str
    op: str
    domain: str = ""
    attributes: dict[str, Any] = {}
    inputs: tuple[Operand, ...] | None = None
    outputs: tuple[str, ...] | None = None
    name: str = ""

    def describe(self, called: Called = in_full) -> str:
        return f"replace {called(self.node)} by {shown(self.op, 60)}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        old = graph.node(self.node)
        outputs = list(old.output) if self.outputs is None else list(self.outputs)
        missing = [n for n in old.output if n not in outputs and (n in graph.lookups.readers or graph.read_outside(n))]
        if missing:
            raise LayerwiseError(f"its output {shown(missing[0], 120)!r} is still read")
        if any(graph.defines(name) for name in outputs if name and name not in old.output):
            raise LayerwiseError("one of its outputs is made already")
        label = self.name or old.name
        inputs = list(old.input)
        if self.inputs is not None:
            graph, inputs = _operands(graph, self.inputs, label or outputs[0])
        if label != old.name and label in graph.lookups.by_name:
            raise LayerwiseError(f"another node is named {shown(label, 120)!r}")
        new = _node(self, inputs, outputs, label)
        graph = in_time(graph.replaced({id(old): [new]}), new)
        return without_unread(without_values(graph, old.output), [old])


def is_op(node: onnx.NodeProto, ops: Sequence[str]) -> bool:
    """Return whether the node's operator is one of `ops`, given as "Op" or "domain:Op"."""
    return node.op_type in ops or f"{node.domain}:{node.op_type}" in ops


def _operands(graph: Graph, operands: Sequence[Operand], label: str) -> tuple[Graph, list[str]]:
    names = []
    for number, operand in enumerate(operands):
        graph, name = add_operand(graph, operand, f"{label}_constant_{number}")
        names.append(name)
    return graph, names


def _node(
    edit: InsertNode | AddNode | ReplaceNode, inputs: Sequence[str], outputs: Sequence[str], name: str
) -> onnx.NodeProto:
    node = helper.make_node(edit.op, inputs, outputs, name, domain=edit.domain or None)
    node.attribute.extend(attributes(edit.attributes, edit.op, edit.domain))
    return node
