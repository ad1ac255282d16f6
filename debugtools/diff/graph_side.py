"""A graph as comparing models sees it: its nodes with what tells them apart, whatever they are called."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.records import Node
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.surgery.inspect.view import Elided, GraphView
from layerwise._tool.surgery.model.topological_order import topological_order

Signature = tuple[Any, ...]
BLOCK = 1 << 20
_SMALL = 1 << 16  # elements
Bytes = NDArray[np.uint8]


def raw(array: NDArray[np.generic]) -> Bytes:
    """The bytes of an array, its own memory where it is contiguous."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def blocks(data: Bytes) -> Iterator[Bytes]:
    """Yield consecutive blocks."""
    for start in range(0, data.size, BLOCK):
        yield data[start : start + BLOCK]


class GraphSide:
    """A graph to be matched. inputs, outputs: names, in order; labels: of nodes, as people know them.

    signatures: operator and attributes of each node, equal where they are equal in the other model, wherever the values
    of tensors lie.
    """

    def __init__(self, view: GraphView, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self.view, self.inputs, self.outputs = view, list(inputs), list(outputs)
        self.nodes: list[Node] = list(view.nodes())
        self.labels = [node.name or next(filter(None, node.outputs), "") for node in self.nodes]
        self.signatures = [self._signature(node) for node in self.nodes]
        self.weights: dict[str, TensorRecord] = {}
        for tensor in view.initializers:
            self.weights.setdefault(tensor.name, tensor)
        self.maker: dict[str, tuple[int, int]] = {}
        for number, node in enumerate(self.nodes):
            for slot, name in enumerate(node.outputs):
                if name:
                    self.maker.setdefault(name, (number, slot))

    @cached_property
    def by_label(self) -> dict[str, int]:
        """The node of a label, for labels that only one node has."""
        found: dict[str, int] = {}
        for number, label in enumerate(self.labels):
            found[label] = -1 if label in found else number
        return {label: number for label, number in found.items() if number >= 0 and label}

    @cached_property
    def order(self) -> list[int]:
        """The nodes in topological order (in the file's where there is none)."""
        maker = self.maker
        return topological_order([[maker[n][0] for n in node.inputs if n in maker] for node in self.nodes])[0]

    @cached_property
    def read_by(self) -> dict[str, list[int]]:
        """The nodes that read each tensor."""
        found: dict[str, list[int]] = {}
        for number, node in enumerate(self.nodes):
            for name in dict.fromkeys(node.inputs):
                found.setdefault(name, []).append(number)
        return found

    @cached_property
    def readers(self) -> list[list[str]]:
        """The operators that read each node's outputs, sorted."""
        found: list[list[str]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for name in node.inputs:
                if name in self.maker:
                    found[self.maker[name][0]].append(node.op)
        return [sorted(operators) for operators in found]

    @cached_property
    def parameters(self) -> dict[str, TensorRecord]:
        """The weights, what Constant nodes hold, and what Identity nodes make of these."""
        found = dict(self.weights)
        for node in map(self.nodes.__getitem__, self.order):
            if node.op == "Constant" and node.outputs:
                for _, value in self.view.attributes(node):
                    if isinstance(value, TensorRecord):
                        found[node.outputs[0]] = value
            elif node.op == "Identity" and node.inputs and node.inputs[0] in found:
                found[node.outputs[0]] = found[node.inputs[0]]
        return found

    @cached_property
    def contents(self) -> dict[str, bytes]:
        """Hashes of the parameters that are small."""
        found = {}
        for name, tensor in self.parameters.items():
            if math.prod(tensor.dims) <= _SMALL and (digest := self.digest(tensor)) is not None:
                found[name] = digest
        return found

    def is_parameter(self, number: int) -> bool:
        """Whether a node makes nothing but a parameter."""
        return any(name in self.parameters for name in self.nodes[number].outputs)

    def has_body(self, number: int) -> bool:
        """Whether a node has a body in one of its attributes."""
        node = self.nodes[number]
        return _may_have_body(self.view.attribute_bytes(node)) and any(
            isinstance(value, GraphView) for _, value in self.view.attributes(node)
        )

    def captures(self, number: int) -> list[str]:
        """What the bodies of a node read of what lies around them."""
        node = self.nodes[number]
        if not _may_have_body(self.view.attribute_bytes(node)):
            return []
        bodies = [value for _, value in self.view.attributes(node) if isinstance(value, GraphView)]
        return list(dict.fromkeys(name for body in bodies for name in _free_names(body)))

    def digest(self, tensor: TensorRecord) -> bytes | None:
        """A hash of type, shape and values, None for values that cannot be had."""
        with suppress(LayerwiseError):
            array = self.view.array(tensor)
            digest = hashlib.blake2b(f"{array.dtype} {array.shape}".encode(), digest_size=16)
            if array.dtype.hasobject:
                digest.update(repr(array.tolist()).encode())
            else:
                for block in blocks(raw(array)):
                    digest.update(block.data)
            return digest.digest()
        return None

    def _signature(self, node: Node) -> Signature:
        raw_attributes = self.view.attribute_bytes(node)
        placed = any(b"location" in data for data in raw_attributes)
        if placed or _may_have_body(raw_attributes):  # where tensors lie and what a body's are called does not matter
            return node.op, node.domain, node.overload, *sorted(self._content(node))
        return node.op, node.domain, node.overload, *sorted(raw_attributes)

    def _content(self, node: Node) -> Iterator[str]:
        for name, value in self.view.attributes(node):
            yield f"{name} {self._text(value)}"

    def _text(self, value: Any) -> str:
        if isinstance(value, TensorRecord):
            return str(self.digest(value))
        if isinstance(value, GraphView):
            return ",".join(node.op for node in value.nodes())
        return f"{value.values} {value.total}" if isinstance(value, Elided) else repr(value)


def _free_names(view: GraphView) -> Iterator[str]:
    known = {value.name for value in view.inputs} | view.initializer_names
    for node in view.nodes():
        inner = [value for _, value in view.attributes(node) if isinstance(value, GraphView)]
        for name in (*node.inputs, *(name for body in inner for name in _free_names(body))):
            if name and name not in known:
                yield name
        known.update(node.outputs)


def _may_have_body(attributes: Sequence[bytes]) -> bool:
    """Whether the tag of a graph or of graphs (fields 6 and 11 of an AttributeProto) is among the bytes."""
    return any(b"\x32" in data or b"\x5a" in data for data in attributes)
