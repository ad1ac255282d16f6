"""Reads types, shapes and tensors from a structure's bytes, without the onnx package.

Readers take the bytes and a span; they raise WireError if the bytes do not fit the format. A message given in
several parts is merged in order.
Message and field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from functools import lru_cache
from typing import NamedTuple

from layerwise._tool.backends.model.records import Span
from layerwise._tool.backends.model.structure import TensorRecord, read_tensor, text
from layerwise._tool.backends.model.wire import BYTES, MAX_DEPTH, VARINT, Source, WireError, fields, signed, varints
from layerwise._tool.backends.type_names import type_name

Dim = int | str | None
_TYPES = {1: "tensor", 4: "sequence", 5: "map", 7: "opaque", 8: "sparse", 9: "optional"}


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
