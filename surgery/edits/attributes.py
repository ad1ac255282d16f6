"""Edits of a node's attributes, operator and domain, and of names."""

from typing import Any

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import Called, in_full, shown
from layerwise._tool.surgery.edits.base import GraphEdit, listed, place
from layerwise._tool.surgery.edits.operands import attribute, kind_of, schema_kind
from layerwise._tool.surgery.model.structure import Graph, changed
from layerwise._tool.surgery.rewrite.rewiring import named, renamed, reread


class SetAttribute(GraphEdit, frozen=True, tag="set-attribute", kw_only=True):
    """Set an attribute of nodes; value None removes it.

    kind: int, float, string, ints, floats, strings or tensor (then the value is a constant); by default its current
    one, or that of the operator's schema.
    """

    nodes: tuple[str, ...]
    name: str
    value: Any = None
    kind: str = ""

    def describe(self, called: Called = in_full) -> str:
        what = f"remove attribute {shown(self.name, 60)}" if self.value is None else self._setting()
        return f"{what} of {listed(self.nodes, called)}{place(self.scope)}"

    def _setting(self) -> str:
        return f"set {shown(self.name, 60)}={shown(str(self.value), 60)}"

    def _changed(self, graph: Graph) -> Graph:
        return graph.replaced({id(node): [self._edited(node)] for node in map(graph.node, self.nodes)})

    def _edited(self, node: onnx.NodeProto) -> onnx.NodeProto:
        old = next((i for i, a in enumerate(node.attribute) if a.name == self.name), None)
        new = changed(node)
        if self.value is None:
            if old is None:
                raise LayerwiseError(f"{shown(node.name or node.op_type, 80)!r} has no such attribute")
            del new.attribute[old]
            return new
        kind = self.kind or (kind_of(node.attribute[old]) if old is not None else "")
        made = attribute(self.name, self.value, kind or schema_kind(node.op_type, node.domain, self.name))
        if old is None:
            new.attribute.append(made)
        else:
            new.attribute[old].CopyFrom(made)
        return new


class SetOp(GraphEdit, frozen=True, tag="set-op", kw_only=True):
    """Change the operator of nodes, and its domain if given ("" is ai.onnx); all else stays."""

    nodes: tuple[str, ...]
    op: str = ""
    domain: str | None = None

    def describe(self, called: Called = in_full) -> str:
        domain = "" if self.domain is None else f" of domain {shown(self.domain or 'ai.onnx', 60)}"
        return f"make {listed(self.nodes, called)} {shown(self.op, 60) or 'nodes'}{domain}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        if not self.op and self.domain is None:
            raise LayerwiseError("an operator or a domain must be given")
        return graph.replaced({id(node): [self._edited(node)] for node in map(graph.node, self.nodes)})

    def _edited(self, node: onnx.NodeProto) -> onnx.NodeProto:
        new = changed(node, op_type=self.op or node.op_type)
        if self.domain is not None:
            new.domain = self.domain
        return new


class RenameNode(GraphEdit, frozen=True, tag="rename-node", kw_only=True):
    """Rename a node."""

    node: str
    to: str

    def describe(self, called: Called = in_full) -> str:
        return f"rename node {called(self.node)} to {called(self.to)}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        if not self.to or self.to in graph.lookups.by_name:
            raise LayerwiseError("a node has that name already" if self.to else "a name must be given")
        node = graph.node(self.node)
        return graph.replaced({id(node): [changed(node, name=self.to)]})


class RenameTensor(GraphEdit, frozen=True, tag="rename-tensor", kw_only=True):
    """Rename a tensor, in its readers too: a node's output, a graph input, a weight."""

    tensor: str
    to: str

    def describe(self, called: Called = in_full) -> str:
        return f"rename tensor {called(self.tensor)} to {called(self.to)}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        old, new = self.tensor, self.to
        if not graph.defines(old):
            raise LayerwiseError("this graph does not define that tensor")
        if not new or graph.taken(new):
            raise LayerwiseError("that name is taken" if new else "a name must be given")
        if old in graph.lookups.makers:
            return renamed(graph, old, new)
        return _renamed_source(graph, old, new)


def _renamed_source(graph: Graph, old: str, new: str) -> Graph:
    """Rename a graph input or a weight."""
    if old in graph.sparse_names():
        raise LayerwiseError("sparse weights keep their names")
    weights = {
        new if name == old else name: changed(tensor, name=new) if name == old else tensor
        for name, tensor in graph.initializers.items()
    }
    values: dict[str, onnx.ValueInfoProto] = {
        new if name == old else name: named(value, old, new) for name, value in graph.values.items()
    }
    return reread(graph, {old: new}).with_(
        initializers=weights,
        values=values,
        inputs=tuple(named(value, old, new) for value in graph.inputs),
        outputs=tuple(named(value, old, new) for value in graph.outputs),
    )
