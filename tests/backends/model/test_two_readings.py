"""A model read as protobuf objects and as records says the same, however its bytes are laid out.

The same model has many encodings: fields in any order, lists packed or not, a message in several parts that are merged,
values given twice of which the last counts, fields that nobody knows.
"""

import random
import struct
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.record_values import (
    Attribute,
    read_attribute,
    read_initializer,
    read_sparse_initializer,
    read_value,
)
from layerwise._tool.backends.model.records import GraphSpans, read_function, read_model, read_node
from layerwise._tool.backends.model.wire import put_bytes, put_varint
from layerwise._tool.backends.type_names import type_name

LIMIT = 1000
_FIXED32, _FIXED64 = 5, 1
_UNKNOWN = 90  # a field number that no message of ONNX uses
_NAMES = ("", "x", "y", "weight", "ai.onnx", "com.microsoft", "Constant", "ä" * 70)
_DEPTH = 9
_ALWAYS = ("onnx.ModelProto.graph", "onnx.ModelProto.ir_version", "onnx.AttributeProto.type")


def filled(kind: type[Message], rng: random.Random, depth: int = 0) -> Message:
    """A message with some of its fields set, its messages with some of theirs."""
    message = kind()
    for field in kind.DESCRIPTOR.fields:
        few = field.full_name in _ALWAYS or rng.random() < (0.75 if depth < 4 else 0.4)
        if field.message_type is None:
            if few:
                _set(message, field, rng)
        elif depth < _DEPTH and few:
            part = getattr(message, field.name)
            inner = type(part.add()) if field.is_repeated else type(part)
            if field.is_repeated:
                del part[:]
                part.extend(filled(inner, rng, depth + 1 + (depth > 4)) for _ in range(rng.choice((0, 1, 3))))
            else:
                part.CopyFrom(filled(inner, rng, depth + 1))
    return message


def _set(message: Message, field: FieldDescriptor, rng: random.Random) -> None:
    if field.is_repeated:
        getattr(message, field.name).extend(_value(field, rng) for _ in range(rng.choice((0, 1, 3, 40))))
    else:
        setattr(message, field.name, _value(field, rng))


def _value(field: FieldDescriptor, rng: random.Random) -> Any:
    if field.name in ("data_type", "elem_type", "key_type"):
        return rng.randrange(1, 24)
    if field.name in ("ir_version", "data_location"):
        return int(field.name == "ir_version")
    if field.enum_type is not None:
        return rng.choice([value.number for value in field.enum_type.values if value.number])
    if field.type == FieldDescriptor.TYPE_STRING:
        return rng.choice(_NAMES)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return rng.randbytes(rng.choice((0, 3, 2000)))
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice((0.0, -1.5, 3e4))
    bits = 31 if field.cpp_type == FieldDescriptor.CPPTYPE_INT32 else 63
    low = 0 if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else -(1 << bits)
    return rng.choice((0, 1, 7, 300, low, (1 << bits) - 1))


def encoded(message: Message, rng: random.Random) -> bytes:
    """One of the encodings of a message."""
    pieces: list[list[bytes]] = []
    for field, value in message.ListFields():
        if field.is_repeated:
            pieces.append(_list(field, value, rng))
        elif field.message_type is not None:
            pieces.append([put_bytes(field.number, part) for part in _parts(field, encoded(value, rng), value, rng)])
        else:
            before = [_one(field, _value(field, rng))] if rng.random() < 0.2 and field.containing_oneof is None else []
            pieces.append([*before, _one(field, value)])
    if rng.random() < 0.3:
        pieces.append([put_bytes(_UNKNOWN, b"nobody knows"), put_varint(_UNKNOWN << 3) + put_varint(5)])
    return b"".join(_shuffled(pieces, rng))


def _parts(field: FieldDescriptor, whole: bytes, value: Message, rng: random.Random) -> list[bytes]:
    """The bytes of a message in one part or, of its fields, some in one and some in another."""
    if rng.random() < 0.7 or not value.ListFields() or field.containing_type.name == "AttributeProto":
        return [whole]
    first, second = type(value)(), type(value)()
    for inner, _ in value.ListFields():
        part = rng.choice((first, second))
        if inner.is_repeated or inner.message_type is not None:
            getattr(part, inner.name).MergeFrom(getattr(value, inner.name))
        else:
            setattr(part, inner.name, getattr(value, inner.name))
    return [encoded(first, rng), encoded(second, rng)]


def _shuffled(pieces: list[list[bytes]], rng: random.Random) -> list[bytes]:
    """The pieces of all fields, those of one field in their order."""
    order = [number for number, of_field in enumerate(pieces) for _ in of_field]
    rng.shuffle(order)
    left = [iter(of_field) for of_field in pieces]
    return [next(left[number]) for number in order]


def _list(field: FieldDescriptor, values: Any, rng: random.Random) -> list[bytes]:
    if field.message_type is not None:
        return [put_bytes(field.number, encoded(value, rng)) for value in values]
    if field.type in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES) or rng.random() < 0.4:
        return [_one(field, value) for value in values]
    at = rng.randrange(len(values) + 1)
    packed = [b"".join(_payload(field, value)[1] for value in some) for some in (values[:at], values[at:])]
    return [put_bytes(field.number, some) for some in packed]


def _one(field: FieldDescriptor, value: Any) -> bytes:
    wire, payload = _payload(field, value)
    return put_bytes(field.number, payload) if wire == 2 else put_varint(field.number << 3 | wire) + payload


def _payload(field: FieldDescriptor, value: Any) -> tuple[int, bytes]:
    if isinstance(value, str):
        return 2, value.encode()
    if isinstance(value, bytes):
        return 2, value
    if field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT:
        return _FIXED32, struct.pack("<f", value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
        return _FIXED64, struct.pack("<d", value)
    return 0, put_varint(value & (1 << 64) - 1)


def by_objects(model: ModelProto) -> dict[str, Any]:
    opsets: dict[str, int] = {}
    for opset in model.opset_import:
        opsets.setdefault(
            opset.domain.replace("ai.onnx", "") if opset.domain == "ai.onnx" else opset.domain, opset.version
        )
    return {
        "head": (model.ir_version, model.producer_name, model.producer_version, model.domain, model.model_version),
        "doc": model.doc_string,
        "opsets": opsets,
        "graph": _graph_object(model.graph),
        "functions": [_function_object(function) for function in model.functions],
    }


def _graph_object(graph: onnx.GraphProto) -> dict[str, Any]:
    return {
        "name": graph.name,
        "doc": graph.doc_string,
        "nodes": [_node_object(node) for node in graph.node],
        "weights": [(t.name, t.data_type, list(t.dims)) for t in graph.initializer],
        "sparse": [(t.values.name, t.values.data_type, list(t.dims)) for t in graph.sparse_initializer],
        "inputs": [_value_object(value) for value in graph.input],
        "outputs": [_value_object(value) for value in graph.output],
        "values": [_value_object(value) for value in graph.value_info],
    }


def _function_object(function: onnx.FunctionProto) -> dict[str, Any]:
    return {
        "head": (function.name, function.domain, function.overload, function.doc_string),
        "ends": (list(function.input), list(function.output)),
        "nodes": [_node_object(node) for node in function.node],
        "values": [_value_object(value) for value in function.value_info],
    }


def _node_object(node: onnx.NodeProto) -> tuple[Any, ...]:
    domain = "" if node.domain == "ai.onnx" else node.domain
    head = (node.name, node.op_type, domain, node.overload, list(node.input), list(node.output))
    return *head, [_attribute_object(attribute) for attribute in node.attribute]


def _attribute_object(attribute: onnx.AttributeProto) -> tuple[Any, ...]:
    plain = {1: "f", 2: "i", 3: "s", 6: "floats", 7: "ints", 8: "strings"}
    inner = {
        4: "t",
        5: "g",
        9: "tensors",
        10: "graphs",
        11: "sparse_tensor",
        12: "sparse_tensors",
        13: "tp",
        14: "type_protos",
    }
    values: Any = None
    if attribute.type in plain:
        values = getattr(attribute, plain[attribute.type])
        values = list(values) if attribute.type >= 6 else [values]
    elif attribute.type in inner:
        values = len(getattr(attribute, inner[attribute.type])) if attribute.type in (9, 10, 12, 14) else None
    return attribute.name, attribute.type, attribute.ref_attr_name, values


def _value_object(value: onnx.ValueInfoProto) -> tuple[Any, ...]:
    return value.name, *_type_object(value.type)


def _type_object(of: onnx.TypeProto) -> tuple[str, Any]:
    which = of.WhichOneof("value")
    if which in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(of, which)
        name = type_name(tensor.elem_type) if tensor.elem_type else ""
        shape = tuple(map(_dim_object, tensor.shape.dim)) if tensor.HasField("shape") else None
        return (name if which == "tensor_type" else f"sparse({name})"), shape
    if which in ("sequence_type", "optional_type"):
        return f"{which[:8]}({_type_object(getattr(of, which).elem_type)[0] or '?'})", None
    if which == "map_type":
        key = f"{type_name(of.map_type.key_type)}, " if of.map_type.HasField("key_type") else ""
        return f"map({key}{_type_object(of.map_type.value_type)[0] or '?'})", None
    return ("opaque", None) if which == "opaque_type" else ("", None)


def _dim_object(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.WhichOneof("value") == "dim_value":
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None


def by_records(data: bytes) -> dict[str, Any]:
    model = read_model(data)
    head = (model.ir_version, model.producer, model.producer_version, model.domain, model.model_version)
    functions = [read_function(data, *span) for span in model.functions]
    return {
        "head": head,
        "doc": model.doc,
        "opsets": model.opsets,
        "graph": _graph_records(data, model.graph),
        "functions": [
            {
                "head": (function.graph.name, function.domain, function.overload, function.graph.doc),
                "ends": (function.inputs, function.outputs),
                "nodes": [_node_record(data, span) for span in function.graph.nodes],
                "values": [tuple(read_value(data, *span)) for span in function.graph.values],
            }
            for function in functions
        ],
    }


def _graph_records(data: bytes, graph: GraphSpans) -> dict[str, Any]:
    weights = [read_initializer(data, span) for span in graph.initializers]
    sparse = [read_sparse_initializer(data, span) for span in graph.sparse]
    return {
        "name": graph.name,
        "doc": graph.doc,
        "nodes": [_node_record(data, span) for span in graph.nodes],
        "weights": [(t.name, t.dtype, t.dims) for t in weights],
        "sparse": [(t.name, t.dtype, t.dims) for t in sparse],
        "inputs": [tuple(read_value(data, *span)) for span in graph.inputs],
        "outputs": [tuple(read_value(data, *span)) for span in graph.outputs],
        "values": [tuple(read_value(data, *span)) for span in graph.values],
    }


def _node_record(data: bytes, span: tuple[int, int]) -> tuple[Any, ...]:
    node = read_node(data, *span)
    return *node[:6], [_attribute_record(read_attribute(data, *each, LIMIT)) for each in node.attributes]


def _attribute_record(attribute: Attribute) -> tuple[Any, ...]:
    values: Any = None
    if attribute.kind in (1, 2, 3, 6, 7, 8):
        assert attribute.total == len(attribute.values)
        values = attribute.values
    elif attribute.kind in (9, 10, 12, 14):
        values = attribute.total
    return attribute.name, attribute.kind, attribute.reference, values


@given(st.integers(0, 1 << 32))
@settings(max_examples=30)
def test_objects_and_records_agree_on_any_encoding(tmp_path_factory: Any, seed: int) -> None:
    rng = random.Random(seed)
    data = encoded(filled(ModelProto, rng), rng)
    assert by_records(data) == by_objects(ModelProto.FromString(data))


@given(st.integers(0, 1 << 32))
@settings(max_examples=20)
def test_externalising_weights_changes_nothing_else(tmp_path_factory: Any, seed: int) -> None:
    rng = random.Random(seed)
    data = encoded(filled(ModelProto, rng), rng)
    path: Path = tmp_path_factory.getbasetemp() / "any.onnx"
    path.write_bytes(data)
    with ModelFile(path) as file:
        structure = file.structure_bytes()
    assert by_objects(ModelProto.FromString(structure)) == by_objects(ModelProto.FromString(data))
