"""Nodes, values, attributes and graphs read from a model's structure bytes, without the onnx package.

Readers take the bytes and a span; they raise WireError where the bytes do not fit the format.
Message and field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

import struct
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from backends.structure import Tensor, read_tensor, text
from backends.tensors import Dim, dtype_name
from backends.wire import (
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
)

Span = tuple[int, int]
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
_SCALAR_DEFAULTS: dict[int, Any] = {1: 0.0, 2: 0, 3: b""}


class Node(NamedTuple):
    """One NodeProto. Absent optional inputs and outputs have the name "". attributes: their spans."""

    name: str
    op: str
    domain: str
    overload: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[Span]


class Value(NamedTuple):
    """One ValueInfoProto. kind: "float32", "sequence(int64)", … or "" if not stated; shape: None if not
    stated."""

    name: str
    kind: str
    shape: tuple[Dim, ...] | None


class Attribute(NamedTuple):
    """One AttributeProto. kind: AttributeProto.AttributeType. values: at most the asked-for number of
    `total`.

    values are int, float, bytes, or spans of messages (tensors, graphs, types). reference: the function's
    attribute that stands for it.
    """

    name: str
    kind: int
    values: list[Any]
    total: int
    reference: str


@dataclass
class Graph:
    """The parts of a GraphProto or FunctionProto, as spans in the bytes. A repeated message is read as
    merged."""

    name: str = ""
    doc: str = ""
    nodes: list[Span] = field(default_factory=list)
    initializers: list[Span] = field(default_factory=list)
    sparse: list[Span] = field(default_factory=list)
    inputs: list[Span] = field(default_factory=list)
    outputs: list[Span] = field(default_factory=list)
    values: list[Span] = field(default_factory=list)


@dataclass
class Function:
    """One FunctionProto."""

    graph: Graph = field(default_factory=Graph)
    domain: str = ""
    overload: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


@dataclass
class Model:
    """The head of a ModelProto. opsets: domain ("" is ai.onnx) to version."""

    ir_version: int = 0
    producer: str = ""
    producer_version: str = ""
    domain: str = ""
    model_version: int = 0
    doc: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    graph: Graph = field(default_factory=Graph)
    functions: list[Span] = field(default_factory=list)


def read_model(data: bytes) -> Model:
    """Return the head of the model."""
    source, model = Source(data), Model()
    strings = {2: "producer", 3: "producer_version", 4: "domain", 6: "doc"}
    for number, wire, _, start, end, value in fields(source, 0, len(data)):
        if number in strings and wire == BYTES:
            setattr(model, strings[number], text(data[start:end]))
        elif number == 1 and wire == VARINT:
            model.ir_version = signed(value)
        elif number == 5 and wire == VARINT:
            model.model_version = signed(value)
        elif number == 7 and wire == BYTES:
            read_graph(data, start, end, model.graph)
        elif number == 8 and wire == BYTES:
            domain, version = _opset(source, start, end)
            model.opsets.setdefault(domain, version)
        elif number == 25 and wire == BYTES:
            model.functions.append((start, end))
    return model


def _opset(source: Source, start: int, end: int) -> tuple[str, int]:
    domain, version = "", 0
    for number, wire, _, begin, stop, value in fields(source, start, end):
        if number == 1 and wire == BYTES:
            domain = text(source.read(begin, stop))
        elif number == 2 and wire == VARINT:
            version = signed(value)
    return ("" if domain == "ai.onnx" else domain), version


def read_graph(data: bytes, start: int, end: int, graph: Graph | None = None) -> Graph:
    """Return the parts of a GraphProto, added to `graph` if one is given."""
    graph = graph or Graph()
    lists = {
        1: graph.nodes,
        5: graph.initializers,
        15: graph.sparse,
        11: graph.inputs,
        12: graph.outputs,
        13: graph.values,
    }
    for number, wire, _, begin, stop, _ in fields(Source(data), start, end):
        if wire != BYTES:
            continue
        if number in lists:
            lists[number].append((begin, stop))
        elif number == 2:
            graph.name = text(data[begin:stop])
        elif number == 10:
            graph.doc = text(data[begin:stop])
    return graph


def read_function(data: bytes, start: int, end: int) -> Function:
    """Return the parts of a FunctionProto; its nodes and value infos are in `graph`."""
    function = Function()
    graph = function.graph
    for number, wire, _, begin, stop, _ in fields(Source(data), start, end):
        if wire != BYTES:
            continue
        if number == 7:
            graph.nodes.append((begin, stop))
        elif number == 12:
            graph.values.append((begin, stop))
        elif number in (1, 4, 5, 8, 10, 13):
            _function_text(function, number, text(data[begin:stop]))
    return function


def _function_text(function: Function, number: int, value: str) -> None:
    if number == 1:
        function.graph.name = value
    elif number == 4:
        function.inputs.append(value)
    elif number == 5:
        function.outputs.append(value)
    elif number == 8:
        function.graph.doc = value
    elif number == 10:
        function.domain = value
    else:
        function.overload = value


def read_node(data: bytes, start: int, end: int) -> Node:
    """Return one node. The loop is unrolled for the usual one-byte tags and lengths: it runs for every
    node."""
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: list[Span] = []
    name = op = domain = overload = ""
    pos = start
    while pos < end:
        key = data[pos]
        if key & 0x87 == BYTES and pos + 1 < end and data[pos + 1] < 0x80:
            begin = pos + 2
            pos = begin + data[pos + 1]
            if pos > end:
                raise WireError(f"byte {begin}: a field of a node runs past its end")
            number = key >> 3
        else:
            number, wire, _, begin, pos, _ = next(fields(Source(data), pos, end))
            if wire != BYTES:
                continue
        if number == 1:
            inputs.append(text(data[begin:pos]))
        elif number == 2:
            outputs.append(text(data[begin:pos]))
        elif number == 3:
            name = text(data[begin:pos])
        elif number == 4:
            op = text(data[begin:pos])
        elif number == 5:
            attributes.append((begin, pos))
        elif number == 7:
            domain = text(data[begin:pos])
        elif number == 8:
            overload = text(data[begin:pos])
    return Node(name, op, "" if domain == "ai.onnx" else domain, overload, inputs, outputs, attributes)


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
            name = dtype_name(element) if element else ""
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
            key = f"{dtype_name(value)}, "
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
            dims += _varints(data[begin:stop], 64)[0] if wire == BYTES else [signed(value)]
    values.dims, values.data = dims, None
    return values


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
