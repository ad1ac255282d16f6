"""What tests look at in a model: a graph in it, the nodes that can be low."""

from collections.abc import Callable

import onnx

from layerwise._tool.surgery.model.structure import Graph, Scope, Structure, node_label
from layerwise._tool.surgery.precision.plan import LowType, PrecisionPlan


def graph_at(structure: Structure, scope: Scope) -> Graph:
    """The graph at `scope`, as an edit there is given it."""
    found: list[Graph] = []

    def look(graph: Graph) -> Graph:
        found.append(graph)
        return graph

    structure.at(scope, look)
    return found[0]


def low_nodes(model: onnx.ModelProto, low: LowType) -> list[str]:
    """Labels of the nodes that can compute in `low`, in graph order."""
    slots = PrecisionPlan.of(model, low, ()).slots
    return [node_label(node) for node, own in zip(model.graph.node, slots, strict=True) if own]


def reached(node: int, step: Callable[[int], list[int]]) -> set[int]:
    """All nodes that steps from a node lead to, as `GraphIndex.parents` or `children` takes them."""
    found: set[int] = set()
    waiting = list(step(node))
    while waiting:
        number = waiting.pop()
        if number not in found:
            found.add(number)
            waiting += step(number)
    return found
