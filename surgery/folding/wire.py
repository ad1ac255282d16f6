"""Constant folding in wire format, if no engine is needed: Constant nodes become weights, fills are written out.

A faster `surgery.folding.structure` for models without bodies, functions and shapes computed in the graph, with the
same result. Field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from layerwise._tool.backends.model.record_values import read_attribute, read_value
from layerwise._tool.backends.model.records import Node, read_model
from layerwise._tool.backends.model.structure import INLINE_LIMIT, TensorRecord, read_tensor
from layerwise._tool.backends.model.wire import BYTES, Source, fields, put_bytes, put_int, signed, varints
from layerwise._tool.surgery.folding.options import KEPT, SMALL, FoldOptions
from layerwise._tool.surgery.types.infer import inferred_structure
from layerwise._tool.surgery.wire.graph import INITIALIZER, INPUT, NODE, OUTPUT, VALUE, Field, WireGraph
from layerwise._tool.surgery.wire.pieces import Piece, Repeated, embedded, raw_data, whole_bytes

_DIMS, _TYPE, _INT32, _INT64, _NAME, _RAW, _UINT64, _EXTERNAL, _LOCATION = 1, 2, 5, 7, 8, 9, 11, 13, 14
_FLOAT, _IS_INT64, _IS_TENSOR = 1, 7, 4
_SIZES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8}  # onnxruntime's fill types
_PACKED = (4, 10)  # float_data, double_data
_LEAST_IR = 4  # from this IR version on weights need not be inputs, and one that is may be overridden
_SHAPES = frozenset({"Shape", "Size"})


class Constant(NamedTuple):
    """A future weight, as a TensorProto: without its values if there are many, and complete."""

    bare: bytes
    whole: list[Piece]


class Fill(NamedTuple):
    """The output of a ConstantOfShape. dtype: TensorProto.DataType; unit: the bytes of one element."""

    dtype: int
    unit: bytes
    dims: Sequence[int]

    @property
    def nbytes(self) -> int:
        return len(self.unit) * math.prod(self.dims)

    def constant(self, name: str) -> Constant:
        """Return it as a weight."""
        lengths = b"".join(put_int(_DIMS, length) for length in self.dims)
        head = lengths + put_int(_TYPE, self.dtype) + put_bytes(_NAME, name.encode())
        if self.nbytes < INLINE_LIMIT:
            data = head + put_bytes(_RAW, self.unit * math.prod(self.dims))
            return Constant(data, [data])
        return Constant(head + _ELSEWHERE, [head, *raw_data(Repeated(self.unit, math.prod(self.dims)))])


def fill(graph: WireGraph, node: Node, shape: bytes) -> Fill | None:
    """Return what a ConstantOfShape makes for that int64 TensorProto; None for an unusual type."""
    dims = _integers(shape)
    found = (_FLOAT, bytes(4)) if not node.attributes else _number(graph, node)
    if dims is None or found is None or any(length < 0 for length in dims):
        return None
    return Fill(*found, dims)


def constant(graph: WireGraph, node: Node, folder: Path) -> Constant | None:
    """Return the tensor of a Constant node; None if it has none of its own. folder: location of large values."""
    data = _tensor(graph, node)
    if data is None:
        return None
    kept = (field for field in fields(Source(data), 0, len(data)) if field.number != _NAME)
    named = b"".join(data[field.at : field.end] for field in kept) + put_bytes(_NAME, node.outputs[0].encode())
    return Constant(named, embedded(named, folder))


def _tensor(graph: WireGraph, node: Node) -> bytes | None:
    """Return the tensor `value`, if that is the only attribute of a node."""
    if len(node.attributes) != 1:
        return None
    attribute = read_attribute(graph.data, *node.attributes[0], 2)
    if attribute.reference or attribute.name != "value" or attribute.kind != _IS_TENSOR or len(attribute.values) != 1:
        return None
    return graph.bytes_at(attribute.values[0])


def _number(graph: WireGraph, node: Node) -> tuple[int, bytes] | None:
    """Return type and bytes of the number that a ConstantOfShape repeats."""
    data = _tensor(graph, node)
    if data is None:
        return None
    tensor = _read(data)
    size = _SIZES.get(tensor.dtype, 0)
    found = [] if tensor.external or math.prod(tensor.dims) != 1 else list(_values(data, size))
    return (tensor.dtype, found[0]) if len(found) == 1 and len(found[0]) == size > 0 else None


def _integers(data: bytes) -> list[int] | None:
    """Return the values of a small int64 TensorProto of rank 1; None for others."""
    tensor = _read(data)
    if tensor.dtype != _IS_INT64 or len(tensor.dims) != 1 or tensor.external:
        return None
    found = [value for part in _values(data, 8) for (value,) in struct.iter_unpack("<q", part[: len(part) & ~7])]
    return found if len(found) == tensor.dims[0] else None


def _values(data: bytes, size: int) -> Iterator[bytes]:
    """Return the bytes of a TensorProto's values, `size` each; raw and packed ones in one piece."""
    for field in fields(Source(data), 0, len(data)):
        payload = data[field.start : field.end]
        if field.number == _RAW or field.number in _PACKED:
            yield payload
        elif field.number in (_INT32, _INT64, _UINT64):
            for value in varints(payload) if field.wire == BYTES else [signed(field.value)]:
                yield (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def _read(data: bytes) -> TensorRecord:
    return read_tensor(Source(data), 0, len(data))[0]


_ELSEWHERE = put_bytes(_EXTERNAL, put_bytes(1, b"location") + put_bytes(2, b"left out")) + put_int(_LOCATION, 1)


class Folded(NamedTuple):
    """A folded model. before, nodes: number of nodes before and after; warnings: of shape inference."""

    pieces: list[Piece]
    before: int
    nodes: int
    warnings: list[str]


def fold_bytes(structure: bytes, folder: Path, options: FoldOptions, infer: bool) -> Folded | None:
    """Return the model with constants folded, without unused parts, and with shapes inferred if `infer`.

    folder: base of external locations. None if `surgery.folding.structure` is needed.
    """
    graph = WireGraph(structure)
    constants = _Constants(graph, folder, options)
    return _built(graph, constants, infer) if constants.are_plain() else None


class _Constants:
    """The constants of a graph. new: future weights, by name."""

    def __init__(self, graph: WireGraph, folder: Path, options: FoldOptions) -> None:
        self.graph, self.folder, self.options = graph, folder, options
        self.is_old = graph.head.ir_version < _LEAST_IR
        self.new: dict[str, Constant] = {}
        listed = graph.weights.keys() & graph.inputs.keys()
        self._known = graph.weights.keys() - (set() if self.is_old else listed)

    def are_plain(self) -> bool:
        """Find them; False if anything is beyond this module."""
        there = {*self.graph.inputs, *self.graph.weights}
        passes = self.options.passes
        if not self.graph.is_plain or (passes is not None and passes < 1):
            return False
        for i, (_, node) in enumerate(self.graph.nodes):
            made = set(filter(None, node.outputs))
            if not there.issuperset(filter(None, node.inputs)) or made & there or self.graph.has_body(i):
                return False
            if not self._is_clear(node):
                return False
            there |= made
        return there.issuperset(self.graph.outputs)

    def _is_clear(self, node: Node) -> bool:
        """Return whether the treatment of a node is clear; a constant is then among the new weights."""
        if self.options.shapes and node.op in _SHAPES:
            return False
        if node.op in KEPT or not self._known.issuperset(filter(None, node.inputs)):
            return True
        if node.domain or len(node.outputs) != 1 or not node.outputs[0]:
            return False
        self._known.add(node.outputs[0])
        return self._is_constant(node) if node.op == "Constant" else node.op == "ConstantOfShape" and self._fills(node)

    def _is_constant(self, node: Node) -> bool:
        found = constant(self.graph, node, self.folder)
        if found is not None:
            self.new[node.outputs[0]] = found
        return found is not None

    def _fills(self, node: Node) -> bool:
        """A fill of too many bytes stays a node."""
        shape = self._weight(node.inputs[0]) if len(node.inputs) == 1 else b""
        found = fill(self.graph, node, shape) if 0 < len(shape) <= SMALL else None
        most = SMALL if self.options.threshold is None else self.options.threshold
        if found is not None and found.nbytes <= most:
            self.new[node.outputs[0]] = found.constant(node.outputs[0])
        return found is not None

    def _weight(self, name: str) -> bytes:
        if name in self.new:
            return self.new[name].bare
        span = self.graph.weights.get(name)
        return self.graph.bytes_at(span) if span else b""


def _built(graph: WireGraph, constants: _Constants, infer: bool) -> Folded:
    nodes = graph.needed(constants.new.keys(), graph.outputs)
    made = {name for i in nodes for name in graph.nodes[i][1].outputs}
    read = {name for i in nodes for name in graph.nodes[i][1].inputs if name} | graph.outputs.keys()
    ir_version = _LEAST_IR if constants.is_old else None
    ends: list[Field] = [(NODE, [graph.bytes_at(graph.nodes[i][0])]) for i in nodes]
    ends += _inputs(graph, read, constants.is_old)
    weights = _weights(graph, constants, read)
    declared, warnings = _declared(graph.data, made), list[str]()
    if infer:
        bare: list[Field] = [(INITIALIZER, [weight.bare]) for weight in weights]
        structure = whole_bytes(graph.model([*ends, *bare, *declared], ir_version))
        inferred, warnings = inferred_structure(structure)
        declared = declared if warnings else _declared(inferred, made)
    whole: list[Field] = [(INITIALIZER, weight.whole) for weight in weights]
    return Folded(graph.model([*ends, *whole, *declared], ir_version), len(graph.nodes), len(nodes), warnings)


def _inputs(graph: WireGraph, read: set[str], is_old: bool) -> list[Field]:
    """Return inputs, without those that merely list a weight if that has no effect, or has no readers."""
    spans = (s for name, s in graph.inputs.items() if name not in graph.weights or (name in read and not is_old))
    return [(INPUT, [graph.bytes_at(span)]) for span in spans]


def _weights(graph: WireGraph, constants: _Constants, read: set[str]) -> list[Constant]:
    old = {name: graph.bytes_at(span) for name, span in graph.weights.items() if name in read}
    new = [weight for name, weight in constants.new.items() if name in read]
    return [*(Constant(data, embedded(data, constants.folder)) for data in old.values()), *new]


def _declared(structure: bytes, made: set[str]) -> list[Field]:
    """Return outputs, and the declarations of inner tensors that are made."""
    own = read_model(structure).graph
    inner = [(start, end) for start, end in own.values if read_value(structure, start, end).name in made]
    found: list[Field] = [(OUTPUT, [structure[start:end]]) for start, end in own.outputs]
    return [*found, *((VALUE, [structure[start:end]]) for start, end in inner)]
