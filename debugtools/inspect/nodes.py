"""Which engine layers do each node of an ONNX model: by the names that TensorRT keeps, else by the tensors between.

A layer that says nothing of its nodes but reads and makes tensors of the model does the nodes between them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx

from backends.reads import reads
from backends.text import shown
from backends.trt.inspect_layers import Layer, named_nodes


class Nodes:
    """The nodes of a model's main graph. Those without a name are not spoken of."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self.names = [node.name for node in graph.node if node.name]
        self._known = set(self.names)
        self._maker = {name: at for at, node in enumerate(graph.node) for name in node.output if name}
        self._inputs = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}

    def told(self, layer: Layer) -> Layer:
        """The layer, with the nodes that it does where it did not say so itself."""
        nodes = layer.nodes or named_nodes(layer.name, self._known) or self._between(layer)
        return replace(layer, nodes=nodes)

    def _between(self, layer: Layer) -> list[str]:
        """Names of the nodes from what a layer reads to what it makes; none where it needs more than it reads."""
        stops = {tensor.name for tensor in layer.inputs}
        waiting = [tensor.name for tensor in layer.outputs if tensor.name in self._maker]
        found: set[int] = set()
        while waiting:
            name = waiting.pop()
            if name in stops:
                continue
            if name in self._inputs:
                return []
            at = self._maker.get(name)
            if at is not None and at not in found:
                found.add(at)
                waiting += reads(self._graph.node[at])
        return [self._graph.node[at].name for at in sorted(found) if self._graph.node[at].name]


def layers_of_nodes(names: Sequence[str], layers: Sequence[Layer]) -> dict[str, list[str]]:
    """The layers that do each node; none where it was folded away, or where TensorRT does not say."""
    found: dict[str, list[str]] = {name: [] for name in names}
    for layer in layers:
        for node in layer.nodes:
            if node in found and layer.name not in found[node]:
                found[node].append(layer.name)
    return found


def node_lines(found: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the lines of the table, those of nodes without a layer last."""
    without = [name for name, layers in found.items() if not layers]
    yield f"---- {len(found)} ONNX Node(s), {len(without)} without a layer ----"
    for name, layers in found.items():
        if layers:
            yield f"{shown(name, 200)} -> {shown(', '.join(layers), 400)}"
    yield from (f"{shown(name, 200)} -> none" for name in without)


def node_document(found: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """The same for machines."""
    return {name: list(layers) for name, layers in found.items()}
