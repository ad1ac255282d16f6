"""Edits of names."""

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.edits.base import GraphEdit, place
from layerwise._tool.surgery.model.structure import Graph, changed
from layerwise._tool.surgery.rewrite.rewiring import named, renamed, reread


class RenameNode(GraphEdit, frozen=True, tag="rename-node", kw_only=True):
    """Rename a node."""

    node: str
    to: str

    def describe(self) -> str:
        return f"rename node {shown(self.node, 80)} to {shown(self.to, 80)}{place(self.scope)}"

    def _changed(self, graph: Graph) -> Graph:
        if not self.to or self.to in graph.lookups.by_name:
            raise LayerwiseError("a node has that name already" if self.to else "a name must be given")
        node = graph.node(self.node)
        return graph.replaced({id(node): [changed(node, name=self.to)]})


class RenameTensor(GraphEdit, frozen=True, tag="rename-tensor", kw_only=True):
    """Rename a tensor, in its readers too: a node's output, a graph input, a weight."""

    tensor: str
    to: str

    def describe(self) -> str:
        return f"rename tensor {shown(self.tensor, 80)} to {shown(self.to, 80)}{place(self.scope)}"

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
