"""Replaces an If whose condition is constant by the branch that it takes."""

from pathlib import Path

import onnx
from onnx import helper

from layerwise._tool.surgery.folding.constants import numbers
from layerwise._tool.surgery.model.structure import Graph, changed
from layerwise._tool.surgery.rewrite.rewiring import making, reading


def flattened(graph: Graph, folder: Path | None) -> Graph:
    """Return the graph with all Ifs with constant conditions replaced by their branches."""
    while True:
        decided = next((node for node in graph.nodes if _branch(graph, node, folder) is not None), None)
        if decided is None:
            return graph
        branch = _branch(graph, decided, folder)
        assert branch is not None
        graph = _inlined(graph, decided, branch)


def _branch(graph: Graph, node: onnx.NodeProto, folder: Path | None) -> onnx.GraphProto | None:
    if node.op_type != "If" or node.domain not in ("", "ai.onnx"):
        return None
    condition = numbers(graph, node.input[0], folder)
    if condition is None or len(condition) != 1:
        return None
    wanted = "then_branch" if condition[0] else "else_branch"
    return next((attribute.g for attribute in node.attribute if attribute.name == wanted), None)


def _inlined(graph: Graph, node: onnx.NodeProto, branch: onnx.GraphProto) -> Graph:
    body = Graph.of(branch, graph)
    names = _new_names(graph, body, node)
    outputs = {value.name: node.output[i] for i, value in enumerate(branch.output) if i < len(node.output)}
    weights = {names[name]: changed(tensor, name=names[name]) for name, tensor in body.initializers.items()}
    nodes = [making(reading(inner, names), names) for inner in body.nodes]
    for i, value in enumerate(branch.output):
        target = node.output[i] if i < len(node.output) else ""
        if target and names.get(value.name) != target:  # one tensor for two outputs, or one from outside the branch
            nodes.append(helper.make_node("Identity", [names.get(value.name, value.name)], [target]))
    values = {**graph.values}
    for name, value in body.values.items():
        if name in names and name not in outputs:
            values[names[name]] = changed(value, name=names[name])
    flat = graph.replaced({id(node): nodes})
    return flat.with_(initializers={**graph.initializers, **weights}, values=values)


def _new_names(graph: Graph, body: Graph, node: onnx.NodeProto) -> dict[str, str]:
    """Return names of the branch's tensors outside it: the If's outputs by their names, the others unchanged if
    unused.
    """
    names: dict[str, str] = {}
    for i, value in enumerate(body.outputs):
        if i < len(node.output) and node.output[i] and body.defines(value.name):
            names.setdefault(value.name, node.output[i])
    others = graph.replaced({id(node): []})
    local = [name for inner in body.nodes for name in inner.output if name]
    for name in dict.fromkeys([*local, *body.initializers]):
        if name not in names:
            names[name] = others.fresh(name, [*names.values(), *node.output])
    return names
