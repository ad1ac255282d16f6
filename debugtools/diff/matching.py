"""Which node of one graph is which node of another, in linear time, by structure first and by name where that fails.

A graph is its nodes with what tells them apart, whatever they are called. A node is found from its inputs (same
operator and attributes on tensors that correspond), from its readers (what makes the corresponding input of a node
already found), by its name, or because nothing else in either graph looks like it. Numbered names that shift when a
node is put in between do not mislead: structure goes first.
"""

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import islice
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
    def readers(self) -> list[list[str]]:
        """The operators that read each node's outputs, sorted."""
        found: list[list[str]] = [[] for _ in self.nodes]
        for node in self.nodes:
            for name in node.inputs:
                if name in self.maker:
                    found[self.maker[name][0]].append(node.op)
        return [sorted(operators) for operators in found]

    def has_body(self, number: int) -> bool:
        """Whether a node has a body in one of its attributes."""
        node = self.nodes[number]
        return _may_have_body(self.view.attribute_bytes(node)) and any(
            isinstance(value, GraphView) for _, value in self.view.attributes(node)
        )

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


def _may_have_body(attributes: Sequence[bytes]) -> bool:
    """Whether the tag of a graph or of graphs (fields 6 and 11 of an AttributeProto) is among the bytes."""
    return any(b"\x32" in data or b"\x5a" in data for data in attributes)


_Key = tuple[Signature, tuple[str, ...]]
_UNKNOWN = "\0"  # no tensor's name
_LOOK = 8  # nodes alike that are looked at for one whose names do not speak against it


class Matching:
    """Pairs of nodes. forth: node of `a` -> node of `b`; tensors: name in `a` -> name in `b`, as far as known."""

    def __init__(self, a: GraphSide, b: GraphSide, tensors: Mapping[str, str]) -> None:
        self.a, self.b = a, b
        self.tensors = {"": "", **tensors}
        self.forth: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self._fresh: deque[tuple[int, int]] = deque()
        self._loose = False

    def run(self) -> None:
        """Find all pairs."""
        self._forward(strict=True)
        self._from_outputs()
        self._backward()
        self._by_name()
        self._both_ways()
        self._loose = True
        self._fresh.extend(self.forth.items())
        self._both_ways()
        self._by_likeness()
        self._both_ways()
        self._by_name()

    def _both_ways(self) -> None:
        if not self._done:
            self._forward()
            self._backward()

    @property
    def _done(self) -> bool:
        return len(self.forth) in (len(self.a.nodes), len(self.b.nodes))

    def _pair(self, i: int, j: int) -> None:
        self.forth[i], self.back[j] = j, i
        self._fresh.append((i, j))
        for x, y in zip(self.a.nodes[i].outputs, self.b.nodes[j].outputs, strict=False):
            if x:
                self.tensors.setdefault(x, y)

    def _free(self, i: int, j: int) -> bool:
        return i not in self.forth and j not in self.back

    def _forward(self, *, strict: bool = False) -> None:
        """Pair nodes whose inputs correspond. strict: not under names that stand for others in the other graph."""
        waiting: dict[_Key, deque[int]] = {}
        for j in self.b.order:
            if j not in self.back:
                for key in self._keys_of(j):
                    waiting.setdefault(key, deque()).append(j)
        for i in self.a.order:
            if i in self.forth:
                continue
            inputs = tuple(self.tensors.get(name, _UNKNOWN) for name in self.a.nodes[i].inputs)
            if _UNKNOWN in inputs:
                continue
            for key in self._keys(self.a.signatures[i], inputs):
                chosen = self._choice(i, key, waiting.get(key), strict)
                if chosen is not None:
                    self._pair(i, chosen)
                    break

    def _keys(self, signature: Signature, inputs: tuple[str, ...]) -> list[_Key]:
        """What a node may be found under: operator and attributes; loosely, by the operator alone too."""
        exact = (signature, inputs)
        return [exact, (signature[:2], inputs)] if self._loose else [exact]

    def _keys_of(self, j: int) -> list[_Key]:
        return self._keys(self.b.signatures[j], tuple(self.b.nodes[j].inputs))

    def _choice(self, i: int, key: _Key, found: deque[int] | None, strict: bool) -> int | None:
        if not found:
            return None
        namesake = self.b.by_label.get(self.a.labels[i])
        if namesake is not None and namesake not in self.back and key in self._keys_of(namesake):
            return namesake
        while found and found[0] in self.back:
            found.popleft()
        look = islice(found, _LOOK)
        fitting = [j for j in look if j not in self.back and not (strict and self._others(i, j))]
        alike = (j for j in fitting if self.a.readers[i] == self.b.readers[j])
        return next(alike, fitting[0] if fitting else None)

    def _others(self, i: int, j: int) -> bool:
        """Whether the name of one, or of what it makes, stands for another node in the other graph."""
        return (
            self.b.by_label.get(self.a.labels[i], j) != j
            or self.a.by_label.get(self.b.labels[j], i) != i
            or self.b.maker.get(next(iter(self.a.nodes[i].outputs), ""), (j,))[0] != j
            or self.a.maker.get(next(iter(self.b.nodes[j].outputs), ""), (i,))[0] != i
        )

    def _from_outputs(self) -> None:
        same_count = len(self.a.outputs) == len(self.b.outputs)
        there = set(self.b.outputs)
        for place, name in enumerate(self.a.outputs):
            other = name if name in there else self.b.outputs[place] if same_count else None
            if other is not None:
                self._made_alike(name, other)

    def _backward(self) -> None:
        """Pair what makes the inputs of pairs."""
        while self._fresh:
            i, j = self._fresh.popleft()
            for x, y in zip(self.a.nodes[i].inputs, self.b.nodes[j].inputs, strict=False):
                self._made_alike(x, y)

    def _made_alike(self, x: str, y: str) -> None:
        first, second = self.a.maker.get(x), self.b.maker.get(y)
        if first is None or second is None or first[1] != second[1] or not self._free(first[0], second[0]):
            return
        if self._alike(first[0], second[0]):
            self._pair(first[0], second[0])

    def _alike(self, i: int, j: int) -> bool:
        """Same operator and attributes, and no weight where the other has another one; loosely, the operator alone."""
        if self._loose:
            return self._same_operator(i, j)
        one, other = self.a.nodes[i].inputs, self.b.nodes[j].inputs
        return (
            self.a.signatures[i] == self.b.signatures[j]
            and len(one) == len(other)
            and all(
                (x in self.a.weights) == (y in self.b.weights) and (x not in self.a.weights or self.tensors.get(x) == y)
                for x, y in zip(one, other, strict=True)
            )
        )

    def _by_name(self) -> None:
        """Pair nodes of one name, or whose first outputs have one name."""
        for i, label in enumerate(self.a.labels):
            namesake = self.b.by_label.get(label) if self.a.by_label.get(label) == i else None
            maker = self.b.maker.get(next(iter(self.a.nodes[i].outputs), ""))
            for j in (namesake, maker[0] if maker and maker[1] == 0 else None):
                if j is not None and self._free(i, j) and (self._loose or self._same_operator(i, j)):
                    self._pair(i, j)

    def _same_operator(self, i: int, j: int) -> bool:
        return self.a.signatures[i][:2] == self.b.signatures[j][:2]

    def _by_likeness(self) -> None:
        """Pair what is left and unique in both: same operator, attributes and weights."""
        found: dict[_Key, int | None] = {}
        for j, node in enumerate(self.b.nodes):
            if j not in self.back:
                key = self.b.signatures[j], tuple(name for name in node.inputs if name in self.b.weights)
                found[key] = None if key in found else j
        mine: dict[_Key, int | None] = {}
        for i, node in enumerate(self.a.nodes):
            if i not in self.forth:
                weights = tuple(self.tensors.get(name, "?") for name in node.inputs if name in self.a.weights)
                key = self.a.signatures[i], weights
                mine[key] = None if key in mine else i
        for key, only in mine.items():
            other = found.get(key)
            if only is not None and other is not None:
                self._pair(only, other)
