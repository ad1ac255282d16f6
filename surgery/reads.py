"""What nodes read, subgraph captures included, and the order they can run in."""

from collections.abc import Iterator, Sequence

import onnx

from backends.errors import LayerwiseError
from backends.text import shown
from surgery.graph.order import topological_order


def subgraphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    """The bodies of an If, Loop, Scan or the like."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def captures(graph: onnx.GraphProto) -> list[str]:
    """Names that a body reads from outside itself, at all levels, each once, in order."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {sparse.values.name for sparse in graph.sparse_initializer}
    found: dict[str, None] = {}
    for node in graph.node:
        found.update(dict.fromkeys(name for name in reads(node) if name not in own))
        own.update(node.output)
    found.update(dict.fromkeys(value.name for value in graph.output if value.name not in own))
    return list(found)


def reads(node: onnx.NodeProto) -> list[str]:
    """Tensors that a node reads: its inputs (omitted ones left out) and its bodies' captures, each once."""
    names = dict.fromkeys(name for name in node.input if name)
    for body in subgraphs(node):
        names.update(dict.fromkeys(captures(body)))
    return list(names)


def topological(nodes: Sequence[onnx.NodeProto], node_reads: Sequence[Sequence[str]]) -> list[int]:
    """Return an order of the nodes in which each tensor is made before it is read; the given order if it is one.

    LayerwiseError if there is a cycle.
    """
    maker = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    order, stuck = topological_order([[maker[name] for name in names if name in maker] for names in node_reads])
    if stuck:
        raise LayerwiseError(f"the graph has a cycle through node {shown(nodes[stuck[0]].name or '<unnamed>', 120)!r}")
    return order
