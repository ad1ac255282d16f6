"""Types, shapes and tensors read from a structure's bytes, without the onnx package.

Readers take the bytes and a span; they raise WireError where the bytes do not fit the format.
Message and field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from functools import lru_cache
from typing import NamedTuple

from layerwise._tool.backends.model.records import Span
from layerwise._tool.backends.model.structure import Tensor, read_tensor, text
from layerwise._tool.backends.model.wire import BYTES, MAX_DEPTH, VARINT, Source, WireError, fields, signed, varints
from layerwise._tool.backends.type_names import type_name

Dim = int | str | None


class Value(NamedTuple):
    """One ValueInfoProto. kind: "float32", "sequence(int64)", … or "" if not stated; shape: None if not
    stated."""

    name: str
    kind: str
    shape: tuple[Dim, ...] | None


def read_value(data: bytes, start: int, end: int) -> Value:
    """Return one value info."""
    name, kind = "", ""
    shape: tuple[Dim, ...] | None = None
    for number, wire, _, begin, stop, _ in fields(Source(data), start, end):
        if number == 1 and wire == BYTES:
            name = text(data[begin:stop])
        elif number == 2 and wire == BYTES:
            kind, shape = _type_of(data[begin:stop])
    return Value(name, kind, shape)


@lru_cache(4096)
def _type_of(data: bytes) -> tuple[str, tuple[Dim, ...] | None]:
    """A large graph has few different types: reading each once halves the time of indexing it."""
    return read_type(data, 0, len(data))


def read_type(data: bytes, start: int, end: int, depth: int = 0) -> tuple[str, tuple[Dim, ...] | None]:
    """Return the name of a TypeProto and, for tensors, the shape (None if not stated)."""
    if depth > MAX_DEPTH:
        raise WireError(f"byte {start}: nested more than {MAX_DEPTH} levels deep")
    result: tuple[str, tuple[Dim, ...] | None] = ("", None)
    wrappers = {4: "sequence", 9: "optional"}
    for number, wire, _, begin, stop, _ in fields(Source(data), start, end):
        if wire != BYTES:
            continue
        if number in (1, 8):
            element, shape = _tensor_type(data, begin, stop)
            name = type_name(element) if element else ""
            result = (name if number == 1 else f"sparse({name})"), shape
        elif number in wrappers or number == 5:
            result = _nested_type(data, begin, stop, wrappers.get(number, "map"), depth), None
        elif number == 7:
            result = "opaque", None
    return result


def _nested_type(data: bytes, start: int, end: int, wrapper: str, depth: int) -> str:
    key, inner = "", "?"
    for number, wire, _, begin, stop, value in fields(Source(data), start, end):
        if wire == BYTES:
            inner = read_type(data, begin, stop, depth + 1)[0] or "?"
        elif number == 1 and wire == VARINT:
            key = f"{type_name(value)}, "
    return f"{wrapper}({key}{inner})"


def _tensor_type(data: bytes, start: int, end: int) -> tuple[int, tuple[Dim, ...] | None]:
    element, dims = 0, None
    for number, wire, _, begin, stop, value in fields(Source(data), start, end):
        if number == 1 and wire == VARINT:
            element = value
        elif number == 2 and wire == BYTES:
            inner = fields(Source(data), begin, stop)
            dims = tuple(_dim(data, f.start, f.end) for f in inner if f.number == 1 and f.wire == BYTES)
    return element, dims


def _dim(data: bytes, start: int, end: int) -> Dim:
    dim: Dim = None
    for number, wire, _, begin, stop, value in fields(Source(data), start, end):
        if number == 1 and wire == VARINT:
            dim = signed(value) if signed(value) >= 0 else None
        elif number == 2 and wire == BYTES:
            dim = text(data[begin:stop]) or None
    return dim


def read_initializer(data: bytes, span: Span) -> Tensor:
    """Return a TensorProto without its values."""
    return read_tensor(Source(data), *span)[0]


def read_sparse_initializer(data: bytes, span: Span) -> Tensor:
    """Return a SparseTensorProto's values, with the dense shape."""
    values, dims = Tensor(*span), []
    for number, wire, _, begin, stop, value in fields(Source(data), *span):
        if number == 1 and wire == BYTES:
            values = read_tensor(Source(data), begin, stop)[0]
        elif number == 3:
            dims += varints(data[begin:stop]) if wire == BYTES else [signed(value)]
    values.dims, values.data = dims, None
    return values
