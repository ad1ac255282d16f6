"""What aligning knows of one side's graph, whatever made it: an ONNX file, an fx graph, an engine's layers."""

import msgspec

from layerwise._tool.debugtools.align.operators import operator_class


class AlignNode(msgspec.Struct, frozen=True):
    """One operation. inputs and outputs: tensors by their names on this side; "" for what is left out.

    scope: the modules that it lies in, outermost first, where the exporter or the framework tells.
    source: the name that it had before (an fx node), where the exporter tells.
    """

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    name: str = ""
    scope: tuple[str, ...] = ()
    source: str = ""


class AlignGraph(msgspec.Struct, frozen=True):
    """Operations in topological order, with the graph's inputs and outputs in order and the names of its weights."""

    nodes: tuple[AlignNode, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weights: frozenset[str] = frozenset()


def normalised(graph: AlignGraph) -> frozenset[str]:
    """Tensors that are read only to be normalised by batch statistics; another graph may have that in the weights of
    what makes them."""
    found: set[str] = set()
    others = set(graph.outputs)
    for node in graph.nodes:
        norm = operator_class(node.op) == "batchnorm"
        found.update(node.inputs[:1] if norm else ())
        others.update(node.inputs[1:] if norm else node.inputs)
    return frozenset(found - others)
