"""Reads types, shapes, tensors and attributes from a structure's bytes, without the onnx package.

Readers take the bytes and a span; they raise WireError if the bytes do not fit the format. A message given in
several parts is merged in order.
Message and field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import struct
from functools import lru_cache
from typing import Any, NamedTuple

from layerwise._tool.backends.model.records import Span
from layerwise._tool.backends.model.structure import TensorRecord, read_tensor, text
from layerwise._tool.backends.model.wire import (
    BYTES,
    FIXED32,
    MAX_DEPTH,
    VARINT,
    Field,
    Source,
    WireError,
    fields,
    float32,
    signed,
    varint,
    varints,
)
from layerwise._tool.backends.type_names import type_name

Dim = int | str | None
_TYPES = {1: "tensor", 4: "sequence", 5: "map", 7: "opaque", 8: "sparse", 9: "optional"}
_HIGH_BYTES = bytes(range(0x80, 0x100))
_FIELD_OF_KIND = {
    1: 2,
    2: 3,
    3: 4,
    6: 7,
    7: 8,
    8: 9,
    4: 5,
    5: 6,
    9: 10,
    10: 11,
    11: 22,
    12: 23,
    13: 14,
    14: 15,
}
_REPEATED = {7, 8, 9, 10, 11, 23, 15}
_MESSAGES = {5, 6, 14, 22}
_SCALAR_DEFAULTS: dict[int, Any] = {1: 0.0, 2: 0, 3: b""}


class Value(NamedTuple):
    """One ValueInfoProto. kind: "float32", "sequence(int64)", … or "" if not stated; shape: None if not
    stated."""

    name: str
    kind: str
    shape: tuple[Dim, ...] | None


def read_value(data: bytes, start: int, end: int) -> Value:
    """Return one value info."""
    name = ""
    parts: list[bytes] = []
    for number, wire, _, begin, stop, _ in fields(Source(data), start, end):
        if number == 1 and wire == BYTES:
            name = text(data[begin:stop])
        elif number == 2 and wire == BYTES:
            parts.append(data[begin:stop])
    return Value(name, *_type_of(b"".join(parts)))


@lru_cache(4096)
def _type_of(data: bytes) -> tuple[str, tuple[Dim, ...] | None]:
    """Cached: a large graph has few distinct types, so reading each once halves its indexing time."""
    return read_type(data, 0, len(data))


def read_type(data: bytes, start: int, end: int, depth: int = 0) -> tuple[str, tuple[Dim, ...] | None]:
    """Return the name of a TypeProto and, for tensors, the shape (None if not stated)."""
    if depth > MAX_DEPTH:
        raise WireError(f"byte {start}: nested more than {MAX_DEPTH} levels deep")
    chosen, parts = 0, list[bytes]()
    for number, wire, _, begin, stop, _ in fields(Source(data), start, end):
        if number in _TYPES and wire == BYTES:
            parts = [*parts, data[begin:stop]] if number == chosen else [data[begin:stop]]
            chosen = number
    of = b"".join(parts)
    if chosen in (1, 8):
        element, shape = _tensor_type(of)
        name = type_name(element) if element else ""
        return (name if chosen == 1 else f"sparse({name})"), shape
    if chosen in (4, 5, 9):
        return _nested_type(of, _TYPES[chosen], depth), None
    return _TYPES.get(chosen, ""), None


def _nested_type(data: bytes, wrapper: str, depth: int) -> str:
    key, inner, parts = "", 2 if wrapper == "map" else 1, list[bytes]()
    for number, wire, _, begin, stop, value in fields(Source(data), 0, len(data)):
        if number == inner and wire == BYTES:
            parts.append(data[begin:stop])
        elif wrapper == "map" and number == 1 and wire == VARINT:
            key = f"{type_name(value)}, "
    of = b"".join(parts)
    return f"{wrapper}({key}{read_type(of, 0, len(of), depth + 1)[0] or '?'})"


def _tensor_type(data: bytes) -> tuple[int, tuple[Dim, ...] | None]:
    element, dims = 0, None
    for number, wire, _, begin, stop, value in fields(Source(data), 0, len(data)):
        if number == 1 and wire == VARINT:
            element = value
        elif number == 2 and wire == BYTES:
            inner = fields(Source(data), begin, stop)
            dims = (*(dims or ()), *(_dim(data, f.start, f.end) for f in inner if f.number == 1 and f.wire == BYTES))
    return element, dims


def _dim(data: bytes, start: int, end: int) -> Dim:
    dim: Dim = None
    for number, wire, _, begin, stop, value in fields(Source(data), start, end):
        if number == 1 and wire == VARINT:
            dim = signed(value) if signed(value) >= 0 else None
        elif number == 2 and wire == BYTES:
            dim = text(data[begin:stop]) or None
    return dim


def read_initializer(data: bytes, span: Span) -> TensorRecord:
    """Return a TensorProto without its values."""
    return read_tensor(Source(data), *span)[0]


def read_sparse_initializer(data: bytes, span: Span) -> TensorRecord:
    """Return a SparseTensorProto's values, with the dense shape."""
    parts, dims = list[bytes](), list[int]()
    for number, wire, _, begin, stop, value in fields(Source(data), *span):
        if number == 1 and wire == BYTES:
            parts.append(data[begin:stop])
        elif number == 3:
            dims += varints(data[begin:stop]) if wire == BYTES else [signed(value)]
    of = b"".join(parts)
    values = read_tensor(Source(of), 0, len(of))[0]
    values.start, values.end = span
    values.dims, values.data = dims, None
    return values


class Attribute(NamedTuple):
    """One AttributeProto. kind: AttributeProto.AttributeType. values: at most the requested number of `total`.

    values are int, float, bytes, or spans of messages (tensors, graphs, types). reference: the function attribute it
    refers to.
    """

    name: str
    kind: int
    values: list[Any]
    total: int
    reference: str


def read_attribute(data: bytes, start: int, end: int, limit: int) -> Attribute:
    """Return one attribute with at most `limit` of its values."""
    name, reference, kind = "", "", 0
    found: dict[int, list[Any]] = {}
    totals: dict[int, int] = {}
    for item in fields(Source(data), start, end):
        number = item.number
        if number == 1 and item.wire == BYTES:
            name = text(data[item.start : item.end])
        elif number == 21 and item.wire == BYTES:
            reference = text(data[item.start : item.end])
        elif number == 20 and item.wire == VARINT:
            kind = item.value
        else:
            if number in _MESSAGES and number in found:
                raise WireError(f"byte {item.at}: a tensor, graph or type of an attribute is in several parts")
            values, total = _values(data, item, limit)
            before = found.get(number, []) if number in _REPEATED else []
            found[number] = before + values[: max(0, limit - len(before))]
            totals[number] = total + (totals.get(number, 0) if number in _REPEATED else 0)
    kind = kind or next((k for k, n in _FIELD_OF_KIND.items() if n in found), 0)
    number = _FIELD_OF_KIND.get(kind, 0)
    if number not in found:
        found[number] = [_SCALAR_DEFAULTS[kind]] if kind in _SCALAR_DEFAULTS else []
    return Attribute(name, kind, found[number], totals.get(number, len(found[number])), reference)


def _values(data: bytes, item: Field, limit: int) -> tuple[list[Any], int]:
    """Return up to `limit` values of one field of an attribute, and how many there are."""
    number, wire, start, end = item.number, item.wire, item.start, item.end
    if number in (3, 8) and wire == VARINT:
        return [signed(item.value)], 1
    if number in (2, 7) and wire == FIXED32:
        return [float32(data[start:end])], 1
    if wire != BYTES:
        return [], 0
    if number in (4, 9):
        return [data[start:end]], 1
    if number == 7:
        total = (end - start) // 4
        some = min(total, limit)
        return list(struct.unpack(f"<{some}f", data[start : start + 4 * some])), total
    if number == 8:
        return _varints(data[start:end], limit)
    return [(start, end)], 1


def _varints(data: bytes, limit: int) -> tuple[list[int], int]:
    values: list[int] = []
    pos, end = 0, len(data)
    while pos < end and len(values) < limit:
        value, pos = varint(data, pos, end)
        values.append(signed(value))
    return values, len(values) + len(data[pos:].translate(None, _HIGH_BYTES))
