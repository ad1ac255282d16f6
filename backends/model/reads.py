"""What nodes read, including tensors captured by subgraphs."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    import onnx


class MissingTensor(LayerwiseError):
    """A tensor that a node reads and nothing makes."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{shown(name, 200)!r} is read, but nothing makes it: see `layerwise check lint`")


def subgraphs(node: "onnx.NodeProto") -> "Iterator[onnx.GraphProto]":
    """Return the bodies of an If, Loop, Scan or the like."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def every_node(nodes: "Iterable[onnx.NodeProto]") -> "Iterator[onnx.NodeProto]":
    """Yield nodes, each followed by those of its bodies."""
    for node in nodes:
        yield node
        for body in subgraphs(node):
            yield from every_node(body.node)


def captures(graph: "onnx.GraphProto") -> list[str]:
    """Return the names that a body reads from outside itself, at all levels, each once, in order."""
    own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    own |= {sparse.values.name for sparse in graph.sparse_initializer}
    found: dict[str, None] = {}
    for node in graph.node:
        found.update(dict.fromkeys(name for name in reads(node) if name not in own))
        own.update(node.output)
    found.update(dict.fromkeys(value.name for value in graph.output if value.name not in own))
    return list(found)


def reads(node: "onnx.NodeProto") -> list[str]:
    """Return the tensors that a node reads: its inputs (without omitted ones) and its bodies' captures, each once."""
    names = dict.fromkeys(name for name in node.input if name)
    for body in subgraphs(node):
        names.update(dict.fromkeys(captures(body)))
    return list(names)
