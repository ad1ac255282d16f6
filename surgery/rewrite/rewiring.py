"""Changes which tensors nodes read and make, bodies included, and the position of a new node among the others."""

from collections.abc import Iterable, Mapping

import onnx

from layerwise._tool.backends.model.reads import reads, subgraphs
from layerwise._tool.surgery.model.structure import AnyGraph, changed
from layerwise._tool.surgery.rewrite.tidy import in_order


def reading(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Return the node reading other tensors (old name -> new), also in its bodies; unchanged if it reads none."""
    if names.keys().isdisjoint(reads(node)):
        return node
    copy = changed(node)
    copy.input[:] = [names.get(name, name) for name in node.input]
    for body in subgraphs(copy):
        _capture(body, names)
    return copy


def making(node: onnx.NodeProto, names: Mapping[str, str]) -> onnx.NodeProto:
    """Return the node with other output names."""
    copy = changed(node)
    copy.output[:] = [names.get(name, name) for name in node.output]
    return copy


def reread(graph: AnyGraph, names: Mapping[str, str], nodes: Iterable[onnx.NodeProto] | None = None) -> AnyGraph:
    """Return the graph with nodes (all, or `nodes`) reading other tensors. Graph outputs stay."""
    if nodes is None:
        nodes = {id(node): node for name in names for node in graph.lookups.readers.get(name, ())}.values()
    return graph.replaced({id(node): [reading(node, names)] for node in nodes})


def renamed(graph: AnyGraph, old: str, new: str) -> AnyGraph:
    """Return the graph with a node's output renamed, in its readers and as a graph output."""
    maker = graph.lookups.makers[old]
    graph = reread(graph.replaced({id(maker): [making(maker, {old: new})]}), {old: new})
    values = {new if name == old else name: named(value, old, new) for name, value in graph.values.items()}
    return graph.with_(values=values, outputs=tuple(named(value, old, new) for value in graph.outputs))


def named(value: onnx.ValueInfoProto, old: str, new: str) -> onnx.ValueInfoProto:
    """Return the value info under the name `new` if it is that of `old`, otherwise unchanged."""
    return changed(value, name=new) if value.name == old else value


def without_values(graph: AnyGraph, names: Iterable[str]) -> AnyGraph:
    """Return the graph without declarations of some inner tensors."""
    gone = {name for name in names if name in graph.values}
    return graph.with_(values={n: v for n, v in graph.values.items() if n not in gone}) if gone else graph


def _capture(body: onnx.GraphProto, names: Mapping[str, str]) -> None:
    own = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
    own |= {name for node in body.node for name in node.output}
    seen = {old: new for old, new in names.items() if old not in own}
    for node in body.node:
        node.input[:] = [seen.get(name, name) for name in node.input]
        for inner in subgraphs(node):
            _capture(inner, seen)
    for value in body.output:
        value.name = seen.get(value.name, value.name)


def placed(graph: AnyGraph, node: onnx.NodeProto) -> AnyGraph:
    """Return the graph with a new node, after the makers of its inputs and before its readers."""
    known, ids = graph.lookups.makers, list(map(id, graph.nodes))
    last = max((ids.index(id(known[name])) for name in reads(node) if name in known), default=-1)
    nodes = (*graph.nodes[: last + 1], node, *graph.nodes[last + 1 :])
    return in_time(graph.with_(nodes=nodes), node)


def in_time(graph: AnyGraph, node: onnx.NodeProto) -> AnyGraph:
    """Return the graph, sorted if the node is before one that it reads or after one that reads it."""
    known, ids = graph.lookups, list(map(id, graph.nodes))
    before = set(ids[: ids.index(id(node))])
    early = any(id(r) in before for name in node.output if name for r in known.readers.get(name, ()))
    makers = [known.makers[name] for name in reads(node) if name in known.makers]
    late = any(id(maker) not in before and maker is not node for maker in makers)
    return in_order(graph) if early or late else graph
