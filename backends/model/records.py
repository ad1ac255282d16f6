"""Reads models, graphs, functions and nodes from a structure's bytes, without the onnx package.

Readers take the bytes and a span; they raise WireError if the bytes do not fit the format.
Message and field numbers: onnx.proto, https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from layerwise._tool.backends.model.structure import text
from layerwise._tool.backends.model.wire import BYTES, VARINT, Source, WireError, fields, signed, varint

Span = tuple[int, int]


class Node(NamedTuple):
    """One NodeProto. Omitted optional inputs and outputs have the name "". attributes: their spans."""

    name: str
    op: str
    domain: str
    overload: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[Span]


@dataclass
class GraphSpans:
    """The parts of a GraphProto or FunctionProto, as spans in the bytes. A repeated message is merged."""

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

    graph: GraphSpans = field(default_factory=GraphSpans)
    domain: str = ""
    overload: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


@dataclass
class ModelRecord:
    """The top level of a ModelProto. opsets: domain ("" is ai.onnx) to version."""

    ir_version: int = 0
    producer: str = ""
    producer_version: str = ""
    domain: str = ""
    model_version: int = 0
    doc: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    graph: GraphSpans = field(default_factory=GraphSpans)
    functions: list[Span] = field(default_factory=list)


def read_model(data: bytes) -> ModelRecord:
    """Return the top level of the model."""
    source, model = Source(data), ModelRecord()
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


def read_graph(data: bytes, start: int, end: int, graph: GraphSpans | None = None) -> GraphSpans:
    """Return the parts of a GraphProto, merged into `graph` if one is given."""
    graph = graph or GraphSpans()
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


def node_fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Number and span of each field of a node that has bytes. WireError if they do not fit the format.

    Unrolled for the usual one-byte tags, since it runs for every node.
    """
    pos = start
    while pos < end:
        key = data[pos]
        if key & 0x87 == BYTES and pos + 1 < end:
            length, begin = data[pos + 1], pos + 2
            if length >= 0x80:
                length, begin = varint(data, pos + 1, end)
            pos = begin + length
            if pos > end:
                raise WireError(f"byte {begin}: a field of a node runs past its end")
            number = key >> 3
        else:
            number, wire, _, begin, pos, _ = next(fields(Source(data), pos, end))
            if wire != BYTES:
                continue
        yield number, begin, pos


def read_node(data: bytes, start: int, end: int) -> Node:
    """Return one node."""
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: list[Span] = []
    name = op = domain = overload = ""
    for number, begin, stop in node_fields(data, start, end):
        if number == 1:
            inputs.append(text(data[begin:stop]))
        elif number == 2:
            outputs.append(text(data[begin:stop]))
        elif number == 3:
            name = text(data[begin:stop])
        elif number == 4:
            op = text(data[begin:stop])
        elif number == 5:
            attributes.append((begin, stop))
        elif number == 7:
            domain = text(data[begin:stop])
        elif number == 8:
            overload = text(data[begin:stop])
    return Node(name, op, "" if domain == "ai.onnx" else domain, overload, inputs, outputs, attributes)
