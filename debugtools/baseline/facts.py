"""What makes each tensor of a graph, in few bytes: digests of operators and of weights, without names or places.

A tensor's region are the nodes that make it from the nearest tensors that are compared; nodes that hang on weights
alone belong to the regions of all that read them.
"""

import hashlib
from collections.abc import Container, Iterable, Iterator
from functools import cached_property
from pathlib import Path

import onnx
from msgspec import Struct
from onnx import numpy_helper

from layerwise._tool.backends.filesystem.files import open_regular
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.cut.segments import GraphCut

_BYTES = 4
_CHUNK = 4 << 20


class Fact(Struct, frozen=True):
    """What is known of a tensor. depth: nodes in a row behind it. reads: the nearest compared tensors before it.

    operator, weights: digests of its region, "" for an input.
    """

    depth: int = 1
    reads: tuple[str, ...] = ()
    operator: str = ""
    weights: str = ""


class Facts:
    """Of one graph. compared: the tensors (its own names) that regions end at."""

    def __init__(self, file: ModelFile, compared: Container[str]) -> None:
        self._folder = file.folder
        self._cut = GraphCut(file.structure())
        self._compared = compared
        self._content: dict[str, bytes] = {}
        self._nodes: dict[int, bytes] = {}

    @cached_property
    def _fixed(self) -> set[str]:
        """Tensors that hang on weights alone."""
        found = set(self._cut.initializers) | set(self._cut.sparse)
        for node, reads in zip(self._cut.nodes, self._cut.reads, strict=True):
            if found.issuperset(reads):
                found.update(node.output)
        return found

    def of(self, name: str) -> Fact:
        """What is known of a tensor; a Fact of an input for one that no node makes."""
        if name not in self._cut.maker:
            return Fact()
        nodes, reads, weights = self._region(name)
        operator = hashlib.blake2b(digest_size=_BYTES)
        values = hashlib.blake2b(digest_size=_BYTES)
        for i in nodes:
            operator.update(self._node(i))
        for weight in weights:
            values.update(self._weight(weight))
        depth = self._cut.depth[self._cut.maker[name]]
        return Fact(depth, tuple(reads), operator.hexdigest(), values.hexdigest() if weights else "")

    def whole(self) -> str:
        """A digest of the whole graph."""
        made = hashlib.blake2b(digest_size=2 * _BYTES)
        for i, reads in enumerate(self._cut.reads):
            made.update(self._node(i))
            for name in reads:
                if name in self._cut.initializers or name in self._cut.sparse:
                    made.update(self._weight(name))
        return made.hexdigest()

    def _region(self, name: str) -> tuple[list[int], list[str], list[str]]:
        """The nodes of a tensor's region in order, the compared tensors that they read, and the initializers."""
        nodes, reads, weights = set[int](), dict[str, None](), dict[str, None]()
        waiting = [self._cut.maker[name]]
        while waiting:
            i = waiting.pop()
            if i in nodes:
                continue
            nodes.add(i)
            for read in self._cut.reads[i]:
                if read in self._cut.initializers or read in self._cut.sparse:
                    weights[read] = None
                elif read not in self._cut.maker or (read in self._compared and read not in self._fixed):
                    reads[read] = None
                else:
                    waiting.append(self._cut.maker[read])
        return sorted(nodes), list(reads), list(weights)

    def _node(self, i: int) -> bytes:
        if i not in self._nodes:
            self._nodes[i] = b"".join(self._told(self._cut.nodes[i]))
        return self._nodes[i]

    def _told(self, node: onnx.NodeProto) -> Iterator[bytes]:
        """A node without its names."""
        yield f"{node.domain}:{node.op_type}:{len(node.input)}:{len(node.output)}".encode()
        for attribute in sorted(node.attribute, key=lambda each: each.name):
            yield attribute.name.encode()
            yield from self._value(attribute)

    def _value(self, attribute: onnx.AttributeProto) -> Iterator[bytes]:
        if attribute.HasField("t"):
            yield self._tensor(attribute.t)
        elif attribute.HasField("g"):
            yield from self._graph(attribute.g)
        elif attribute.graphs:
            for graph in attribute.graphs:
                yield from self._graph(graph)
        else:
            bare = onnx.AttributeProto()
            bare.CopyFrom(attribute)
            bare.ClearField("doc_string")
            yield bare.SerializeToString(deterministic=True)

    def _graph(self, graph: onnx.GraphProto) -> Iterator[bytes]:
        for node in graph.node:
            yield from self._told(node)
        for tensor in graph.initializer:
            yield self._tensor(tensor)

    def _weight(self, name: str) -> bytes:
        if name not in self._content:
            if name in self._cut.initializers:
                self._content[name] = self._tensor(self._cut.initializers[name])
            else:
                sparse = self._cut.sparse[name]
                self._content[name] = self._tensor(sparse.values) + self._tensor(sparse.indices)
        return self._content[name]

    def _tensor(self, tensor: onnx.TensorProto) -> bytes:
        """A digest of a tensor's type, shape and values."""
        made = hashlib.blake2b(f"{tensor.data_type}{list(tensor.dims)}".encode(), digest_size=16)
        if tensor.data_location == tensor.EXTERNAL:
            place = {entry.key: entry.value for entry in tensor.external_data}
            if "location" in place and "length" in place:
                for chunk in _read(self._folder / place["location"], int(place.get("offset", 0)), int(place["length"])):
                    made.update(chunk)
        elif tensor.data_type == tensor.STRING:
            for text in tensor.string_data:
                made.update(len(text).to_bytes(8, "little") + text)
        else:
            made.update(tensor.raw_data or numpy_helper.to_array(tensor).tobytes())
        return made.digest()


def _read(path: Path, start: int, length: int) -> Iterable[bytes]:
    """The bytes of a part of a file."""
    with open(open_regular(path), "rb") as stream:  # noqa: PTH123 (a descriptor)
        stream.seek(start)
        while length > 0 and (chunk := stream.read(min(length, _CHUNK))):
            length -= len(chunk)
            yield chunk
