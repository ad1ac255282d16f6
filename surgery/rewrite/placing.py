"""The position of a new node among the others."""

import onnx

from layerwise._tool.backends.model.reads import reads
from layerwise._tool.surgery.model.structure import Graph
from layerwise._tool.surgery.rewrite.tidy import in_order


def placed(graph: Graph, node: onnx.NodeProto) -> Graph:
    """Return the graph with a new node, after the makers of its inputs and before its readers."""
    known, ids = graph.lookups.makers, list(map(id, graph.nodes))
    last = max((ids.index(id(known[name])) for name in reads(node) if name in known), default=-1)
    nodes = (*graph.nodes[: last + 1], node, *graph.nodes[last + 1 :])
    return in_time(graph.with_(nodes=nodes), node)


def in_time(graph: Graph, node: onnx.NodeProto) -> Graph:
    """Return the graph, sorted if the node is before one that it reads or after one that reads it."""
    known, ids = graph.lookups, list(map(id, graph.nodes))
    before = set(ids[: ids.index(id(node))])
    early = any(id(r) in before for name in node.output if name for r in known.readers.get(name, ()))
    makers = [known.makers[name] for name in reads(node) if name in known.makers]
    late = any(id(maker) not in before and maker is not node for maker in makers)
    return in_order(graph) if early or late else graph
