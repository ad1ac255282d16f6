"""Constants that need no engine, in wire format: a repeated number, and the tensor of a Constant node.

Field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import math
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from layerwise._tool.backends.model.record_attributes import read_attribute
from layerwise._tool.backends.model.records import Node
from layerwise._tool.backends.model.structure import INLINE_LIMIT, TensorRecord, read_tensor
from layerwise._tool.backends.model.wire import BYTES, Source, fields, put_bytes, put_int, signed, varints
from layerwise._tool.surgery.wire.graph import WireGraph
from layerwise._tool.surgery.wire.pieces import Piece, Repeated, embedded, raw_data

_DIMS, _TYPE, _INT32, _INT64, _NAME, _RAW, _UINT64, _EXTERNAL, _LOCATION = 1, 2, 5, 7, 8, 9, 11, 13, 14
_FLOAT, _IS_INT64, _IS_TENSOR = 1, 7, 4
_SIZES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8}  # onnxruntime's fill types
_PACKED = (4, 10)  # float_data, double_data


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
