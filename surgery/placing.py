"""Where a new node stands among the others."""

from itertools import count

import onnx

from backends.reads import reads
from surgery.structure import Graph
from surgery.tidy import in_order


def placed(graph: Graph, node: onnx.NodeProto) -> Graph:
    """Return the graph with a new node, after those whose tensors it reads and before its readers."""
    known, ids = graph.lookups.makers, list(map(id, graph.nodes))
    last = max((ids.index(id(known[name])) for name in reads(node) if name in known), default=-1)
    nodes = (*graph.nodes[: last + 1], node, *graph.nodes[last + 1 :])
    return in_time(graph.with_(nodes=nodes), node)


def in_time(graph: Graph, node: onnx.NodeProto) -> Graph:
    """Return the graph sorted, if the node stands before one that it reads or after one that reads it."""
    known, there = graph.lookups, dict(zip(map(id, graph.nodes), count()))
    at = there[id(node)]
    early = any(there[id(r)] < at for name in node.output if name for r in known.readers.get(name, ()))
    late = any(there[id(known.makers[name])] > at for name in reads(node) if name in known.makers)
    return in_order(graph) if early or late else graph
