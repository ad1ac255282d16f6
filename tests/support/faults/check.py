"""Is a reduced result right? Asked of onnxruntime directly, with cuts made by code of its own: not the product's judge.

A set of the suspect's nodes fails if, fed with the clean model's tensors, it makes a tensor of the clean model that
is off by more than 1e-5 of the element and of the tensor's scale. Nodes that read a tensor which the clean model does
not have cannot be asked alone.
"""

from collections.abc import Collection, Mapping

import onnx
from support.faults import running
from support.faults.running import Array


def label(node: onnx.NodeProto) -> str:
    """A node's name, or its first output."""
    return str(node.name or next(filter(None, node.output)))


class Checker:
    """Asks whether sets of nodes of one suspect fail. reference: the clean model's tensors by name, inputs too."""

    def __init__(self, suspect: onnx.ModelProto, reference: Mapping[str, Array]) -> None:
        self._suspect, self._reference = suspect, reference
        self._nodes = {label(node): node for node in suspect.graph.node}
        self._weights = {tensor.name: tensor for tensor in suspect.graph.initializer}
        self._readers: dict[str, set[str]] = {}
        for name, node in self._nodes.items():
            for read in _reads(node):
                self._readers.setdefault(read, set()).add(name)
        self._outputs = {value.name for value in suspect.graph.output}

    def fails(self, chosen: Collection[str]) -> bool:
        """Whether these nodes fail together; nodes that cannot be fed or are not there do not."""
        nodes = [node for name, node in self._nodes.items() if name in chosen]
        made = {name for node in nodes for name in node.output if name}
        feeds = [n for n in dict.fromkeys(r for x in nodes for r in _reads(x)) if n not in made | self._weights.keys()]
        gives = [name for name in made & self._reference.keys() if self._leaves(name, set(chosen))]
        if not nodes or not gives or any(name not in self._reference for name in feeds):
            return False
        found = running.run(self._cut(nodes, feeds, gives), {name: self._reference[name] for name in feeds})
        return not all(_near(found[name], self._reference[name]) for name in gives)

    def minimal(self, chosen: Collection[str]) -> bool:
        """Whether the set fails, and no longer does when any one node is taken away."""
        return self.fails(chosen) and not any(self.fails(set(chosen) - {name}) for name in chosen)

    def _leaves(self, name: str, chosen: set[str]) -> bool:
        readers = self._readers.get(name, set())
        return name in self._outputs or not readers or not readers <= chosen

    def _cut(self, nodes: list[onnx.NodeProto], feeds: list[str], gives: list[str]) -> onnx.ModelProto:
        read = {name for node in nodes for name in _reads(node)}
        inputs = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in ((name, self._reference[name]) for name in feeds)
        ]
        graph = onnx.helper.make_graph(
            nodes,
            "cut",
            inputs,
            [onnx.ValueInfoProto(name=name) for name in gives],
            [tensor for name, tensor in self._weights.items() if name in read],
        )
        version = max(4, self._suspect.ir_version)
        return onnx.helper.make_model(graph, ir_version=version, opset_imports=self._suspect.opset_import)


def _near(mine: Array, reference: Array) -> bool:
    atol = running.ATOL * running.scale(reference) if reference.dtype.kind == "f" else 0.0
    return running.passes(mine, reference, atol)


def _reads(node: onnx.NodeProto) -> list[str]:
    """What a node reads, its bodies' captures among it."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        for body in [attribute.g, *attribute.graphs]:
            made = {value.name for value in body.input} | {tensor.name for tensor in body.initializer}
            made |= {name for inner in body.node for name in inner.output}
            found += [name for inner in body.node for name in _reads(inner) if name not in made]
    return found
