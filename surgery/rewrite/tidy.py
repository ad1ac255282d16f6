"""Removes what no output needs, and sorts nodes topologically."""

from collections.abc import Callable, Collection, Iterable
from typing import Any

import onnx

from layerwise._tool.backends.model.reads import reads, subgraphs
from layerwise._tool.surgery.model.structure import AnyGraph, Graph, Structure, changed
from layerwise._tool.surgery.model.topological_order import topological


def _with_bodies(graph: Graph, node: onnx.NodeProto, edit: Callable[[Graph], Graph]) -> onnx.NodeProto:
    """Return the node with each of its bodies replaced by `edit` of it, as a graph inside `graph`."""
    copy = changed(node)
    for body in subgraphs(copy):
        body.CopyFrom(edit(Graph.of(body, graph)).graph_proto())
    return copy


def map_bodies(graph: AnyGraph, edit: Callable[[Any], Graph]) -> AnyGraph:
    """Return the graph with every direct body replaced by `edit` of it."""
    bodied = graph.lookups.bodied.values()
    return graph.replaced({id(node): [_with_bodies(graph, node, edit)] for node in bodied}) if bodied else graph


def cleaned(graph: AnyGraph) -> AnyGraph:
    """Return the graph with only what its outputs need: nodes, weights and declarations, in bodies too.

    Graph inputs stay, except those that only list an unused weight.
    """
    graph = map_bodies(graph, cleaned)
    nodes, read = needed(graph, graph.output_names)
    if len(nodes) == len(graph.nodes) and graph.initializers.keys() <= read:
        return _declared(graph)
    unused = graph.initializers.keys() - read
    return _declared(
        graph.with_(
            nodes=tuple(nodes),
            inputs=tuple(value for value in graph.inputs if value.name not in unused),
            initializers={name: tensor for name, tensor in graph.initializers.items() if name not in unused},
        )
    )


def cleaned_model(model: Structure) -> Structure:
    """Return the model `cleaned`, without uncalled functions and fields without effect."""
    main = cleaned(model)
    called: set[tuple[str, str]] = set()
    waiting = list(main.nodes)
    bodies = {(function.domain, function.name): function for function in main.functions}
    while waiting:
        node = waiting.pop()
        key = (node.domain, node.op_type)
        if key in bodies and key not in called:
            called.add(key)
            waiting.extend(bodies[key].node)
        waiting += (inner for body in subgraphs(node) for inner in body.node)
    rest = onnx.ModelProto()
    rest.CopyFrom(main.rest)
    for field, value in main.rest.ListFields():
        if isinstance(value, str | int) and not value:
            rest.ClearField(field.name)
    return main.with_(functions=tuple(f for f in main.functions if (f.domain, f.name) in called), rest=rest)


def in_order(graph: AnyGraph) -> AnyGraph:
    """Return the graph, and its bodies, sorted topologically. LayerwiseError if there is a cycle."""
    graph = map_bodies(graph, in_order)
    order = topological(graph.nodes, [reads(node) for node in graph.nodes])
    return graph.with_(nodes=tuple(graph.nodes[i] for i in order))


def unmade(graph: AnyGraph, names: Collection[str]) -> AnyGraph:
    """Return the graph without the outputs `names` of its nodes: a node without remaining outputs is removed.

    Others keep their outputs' positions, under unused names: an output without a name is only safe if
    the operator declares it optional (onnxruntime 1.30 crashes on a Split with one).
    """
    new: dict[int, list[onnx.NodeProto]] = {}
    taken: list[str] = []
    for name in names:
        maker = graph.lookups.makers.get(name)
        if maker is None or id(maker) in new:
            continue
        if all(not output or output in names for output in maker.output):
            new[id(maker)] = []
            continue
        copy = changed(maker)
        for i, output in enumerate(maker.output):
            if output in names:
                copy.output[i] = graph.fresh(f"{output}_unread", taken)
                taken.append(copy.output[i])
        new[id(maker)] = [copy]
    return graph.replaced(new) if new else graph


def count_nodes(graph: Graph | onnx.GraphProto) -> int:
    """Return the number of nodes, including those in bodies."""
    nodes = graph.nodes if isinstance(graph, Graph) else graph.node
    return len(nodes) + sum(count_nodes(body) for node in nodes for body in subgraphs(node))


def needed(graph: Graph, names: Iterable[str]) -> tuple[list[onnx.NodeProto], set[str]]:
    """Return the nodes that the tensors `names` need, in graph order, and these tensors with those that they read."""
    makers = graph.lookups.makers
    read, chosen = set(names), set()
    waiting = list(read)
    while waiting:
        node = makers.get(waiting.pop())
        if node is None or id(node) in chosen:
            continue
        chosen.add(id(node))
        new = set(reads(node)) - read
        read |= new
        waiting += new
    return [node for node in graph.nodes if id(node) in chosen], read


def _declared(graph: AnyGraph) -> AnyGraph:
    """Drop value_info of tensors that do not exist (or are weights, which have their own types)."""
    there = {name for node in graph.nodes for name in node.output if name}
    there -= graph.initializers.keys()
    if graph.values.keys() <= there:
        return graph
    return graph.with_(values={name: value for name, value in graph.values.items() if name in there})
