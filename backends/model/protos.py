"""Whole models as onnx's protobuf objects."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.onnx_native import NoRoom, infer_shapes

if TYPE_CHECKING:
    import onnx
    from google.protobuf.message import Message

Dim = int | str | None
_GRAPH_ATTRIBUTES = (5, 10)  # AttributeProto.GRAPH and GRAPHS


def parse_model(data: bytes, label: object = "model") -> "onnx.ModelProto":
    """Return the ModelProto in `data`. BadFile, naming `label`, if it is not one or has no graph."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model: onnx.ModelProto = onnx.ModelProto.FromString(data)
    except (DecodeError, UnicodeDecodeError) as error:  # the latter if protobuf is pure Python
        raise BadFile(label, f"damaged ONNX model: {error}") from error
    if not model.HasField("graph"):
        raise BadFile(label, "not an ONNX model: there is no graph in it")
    try:
        for message in (model, model.graph, *model.opset_import, *model.metadata_props, *model.functions):
            _require_texts(message)
        for graph in all_graphs(model):
            _require_text(graph)
    except TypeError:  # protobuf returns bytes for a string that is not UTF-8
        raise BadFile(label, "damaged ONNX model: a name is not valid UTF-8") from None
    return model


def inferred(
    model: "onnx.ModelProto", *, check_type: bool = False, strict: bool = False, values: bool = False
) -> "onnx.ModelProto":
    """Return a copy with the types and shapes that onnx infers. Raises like `infer_shapes`.

    values: also propagate constants that determine shapes, unless that takes too much memory.
    """
    import onnx

    data = model.SerializeToString()
    plain = infer_shapes(data, check_type=check_type, strict=strict, values=False)
    found: onnx.ModelProto = onnx.ModelProto.FromString(plain)
    if values and not (_is_complete(found) and not strict):
        with suppress(NoRoom):
            found = onnx.ModelProto.FromString(infer_shapes(data, check_type=check_type, strict=strict))
    return found


def _is_complete(model: "onnx.ModelProto") -> bool:
    """Return whether all dimensions of the main graph's tensors are known; values add nothing then."""
    known = {
        value.name for value in (*model.graph.value_info, *model.graph.output)
        if value.type.tensor_type.HasField("shape")
        and all(dim.HasField("dim_value") for dim in value.type.tensor_type.shape.dim)
    }  # fmt: skip
    return all(name in known for node in model.graph.node for name in node.output if name)


def _require_texts(message: "Message") -> None:
    """Raise TypeError if one of a message's own strings is not text."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            is_one = isinstance(value, str | bytes)
            "".join([value] if is_one else value)


def _require_text(graph: "onnx.GraphProto | onnx.FunctionProto") -> None:
    """Raise TypeError if one of the names of nodes and values is not text."""
    for node in graph.node:
        "".join([node.name, node.op_type, node.domain, *node.input, *node.output])
        "".join([attribute.name for attribute in node.attribute])
    for value in graph.value_info:
        "".join([value.name, *[dim.dim_param for dim in value.type.tensor_type.shape.dim]])
    if hasattr(graph, "initializer"):
        values = [*graph.input, *graph.output, *graph.initializer]
        "".join([graph.name, *[value.name for value in values]])
        "".join([dim.dim_param for v in graph.input for dim in v.type.tensor_type.shape.dim])


def dims_of(value: "onnx.ValueInfoProto") -> list[Dim]:
    """Return the dimensions of a tensor: numbers, symbols, None."""
    dims = value.type.tensor_type.shape.dim
    return [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims]


def set_shape(value: "onnx.ValueInfoProto", shape: Iterable[Dim]) -> None:
    """Change the shape of a tensor (in place)."""
    dims = value.type.tensor_type.shape
    dims.SetInParent()
    del dims.dim[:]
    for dim in shape:
        if dim is None or isinstance(dim, str):
            dims.dim.add(dim_param=dim or None)
        else:
            dims.dim.add(dim_value=dim)


def all_graphs(model: "onnx.ModelProto") -> "Iterator[onnx.GraphProto | onnx.FunctionProto]":
    """Yield the main graph, functions, training graphs and all bodies in them, outer ones first."""
    waiting: list[onnx.GraphProto | onnx.FunctionProto] = [model.graph, *model.functions]
    waiting += [graph for info in model.training_info for graph in (info.initialization, info.algorithm)]
    while waiting:
        graph = waiting.pop(0)
        yield graph
        attributes = [a for node in graph.node for a in node.attribute if a.type in _GRAPH_ATTRIBUTES]
        waiting += [g for a in attributes for g in ([a.g] if a.HasField("g") else [*a.graphs])]


def all_tensors(model: "onnx.ModelProto") -> "Iterator[onnx.TensorProto]":
    """Yield all initializers and tensor attributes, including those of bodies and functions."""
    for graph in all_graphs(model):
        yield from getattr(graph, "initializer", ())
        for sparse in getattr(graph, "sparse_initializer", ()):
            yield from (sparse.values, sparse.indices)
        for attribute in (a for node in graph.node for a in node.attribute):
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
