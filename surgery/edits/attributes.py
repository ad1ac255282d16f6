"""Edits of a node's attributes, operator and domain."""

from typing import Any

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits.base import GraphEdit, listed, place
from layerwise._tool.surgery.edits.operands import attribute, kind_of, schema_kind
from layerwise._tool.surgery.model.structure import Graph, changed


class SetAttribute(GraphEdit, frozen=True, tag="set-attribute", kw_only=True):
    """Set an attribute of nodes; value None removes it.

    kind: int, float, string, ints, floats, strings or tensor (then the value is a constant); by default its current
    one, or that of the operator's schema.
    """

    nodes: tuple[str, ...]
    name: str
    value: Any = None
    kind: str = ""

    def describe(self) -> str:
        what = f"remove attribute {shown(self.name, 60)}" if self.value is None else self._setting()
        return f"{what} of {listed(self.nodes)}{place(self.scope)}"

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

    def describe(self) -> str:
        domain = "" if self.domain is None else f" of domain {shown(self.domain or 'ai.onnx', 60)}"
        return f"make {listed(self.nodes)} {shown(self.op, 60) or 'nodes'}{domain}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        if not self.op and self.domain is None:
            raise LayerwiseError("an operator or a domain must be given")
        return graph.replaced({id(node): [self._edited(node)] for node in map(graph.node, self.nodes)})

    def _edited(self, node: onnx.NodeProto) -> onnx.NodeProto:
        new = changed(node, op_type=self.op or node.op_type)
        if self.domain is not None:
            new.domain = self.domain
        return new
