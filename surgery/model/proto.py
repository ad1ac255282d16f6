"""Helpers for building changed copies of a ModelProto."""

from collections import Counter
from collections.abc import Collection
from typing import Any, TypeVar

import onnx
from google.protobuf.message import Message
from onnx import defs

from layerwise._tool.backends.model.reads import subgraphs

Proto = TypeVar("Proto", bound=Message)


def all_names(graph: onnx.GraphProto) -> Counter[str]:
    """Return every tensor name in the graph and its bodies, at any depth, which a new tensor may not use."""
    names = Counter(value.name for value in [*graph.input, *graph.output, *graph.value_info])
    names.update(tensor.name for tensor in graph.initializer)
    for node in graph.node:
        names.update([*node.input, *node.output])
        for body in subgraphs(node):
            names += all_names(body)
    return names


def fresh(taken: Counter[str], wish: str) -> str:
    """Return `wish`, with a number appended if that is `taken`, and add it to `taken`."""
    name, number = wish, 1
    while taken[name]:
        number += 1
        name = f"{wish}_{number}"
    taken[name] += 1
    return name


def stored_bytes(tensor: onnx.TensorProto) -> int:
    """Return the bytes of a weight, wherever they are stored."""
    length = next((entry.value for entry in tensor.external_data if entry.key == "length"), "")
    return int(length) if length.isdecimal() else tensor.ByteSize()


def schema_of(op_type: str, version: int) -> "defs.OpSchema | None":
    """Return the schema of an operator of ONNX's own domain in an opset, None if it has none."""
    try:
        return defs.get_schema(op_type, version, "")
    except (defs.SchemaError, TypeError):  # TypeError: a version beyond 2^31
        return None


def default_of(op_type: str, domain: str, name: str, version: int) -> Any:
    """Return the value that an operator takes an attribute for where it is left out, None if there is none.

    version: of the opset; 0: the newest.
    """
    try:
        schema = defs.get_schema(op_type, version or defs.onnx_opset_version(), domain)
    except (defs.SchemaError, TypeError):
        return None
    attribute = schema.attributes.get(name)
    if attribute is None or not attribute.default_value.name:
        return None
    value = onnx.helper.get_attribute_value(attribute.default_value)
    return value.decode() if isinstance(value, bytes) else value


def shell(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model without its nodes, weights and value_info; nothing large is copied."""
    bare = remainder(model, ("graph",))
    bare.graph.CopyFrom(remainder(model.graph, ("node", "initializer", "value_info")))
    return bare


def remainder(message: Proto, left_out: Collection[str]) -> Proto:
    """Return a copy of `message` without some of its fields, which are not copied."""
    copy: Proto = type(message)()
    for field, value in message.ListFields():
        if field.name in left_out:
            continue
        if isinstance(value, str | int | bytes):
            setattr(copy, field.name, value)
        elif isinstance(value, Message):
            getattr(copy, field.name).CopyFrom(value)
        else:
            getattr(copy, field.name).extend(value)
    return copy
