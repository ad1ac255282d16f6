"""Runs onnx.checker on a model and collects all of its findings, without reading weights.

The checker stops at the first finding, so a node that violates its operator's schema would hide problems of
the graph. Therefore, if it names a node, the graph is checked again with every operator replaced by an unknown one,
and the nodes one by one. Weights are replaced by empty tensors; their sizes are checked against the file.
Inputs and outputs without a rank are not a problem, although the checker requires a shape: every engine infers them.
"""

from collections.abc import Iterator

import onnx
import onnx.checker
from onnx import TensorProto

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.model.protos import all_graphs, all_tensors
from layerwise._tool.backends.tensors import dtype_name, packed_nbytes
from layerwise._tool.backends.text import shown

_BAD_NODE = "Bad node spec for node"
_ANY = "layerwise.any"
_GRAPHS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def check_graph(model: onnx.ModelProto) -> tuple[list[str], bool]:
    """Return problems of the model apart from its nodes, and whether a node violates its schema.

    `model`: a structure, which is modified.
    """
    short = list(_short_weights(model))
    _empty_weights(model)
    _give_shapes(model)
    message = _checked(model)
    bad_node = _BAD_NODE in message
    if bad_node:
        _any_operators(model)
        message = _checked(model)
    return [text for text in (message if _BAD_NODE not in message else "", *short) if text], bad_node


def check_nodes(model: onnx.ModelProto, graph: onnx.GraphProto) -> Iterator[tuple[int, str]]:
    """Yield position and reason for each node of `graph` that violates its operator's schema."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {entry.domain: entry.version for entry in model.opset_import} or {"": 1}
    for position, node in enumerate(graph.node):
        try:
            onnx.checker.check_node(_without_bodies(node), context)
        except onnx.checker.ValidationError as error:
            yield position, _plain(error)


def _without_bodies(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return the node with empty bodies: alone, their captures would count as missing."""
    if not any(attribute.type in _GRAPHS for attribute in node.attribute):
        return node
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    for attribute in bare.attribute:
        for body in (attribute.g, *attribute.graphs) if attribute.type in _GRAPHS else ():
            body.Clear()
            body.name = "body"
    return bare


def _checked(model: onnx.ModelProto) -> str:
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        return _plain(error)
    except Exception as error:  # protobuf's own, for messages that are too large or too deeply nested
        return f"onnx.checker cannot take the model: {_plain(error)}"
    return ""


def _plain(error: Exception) -> str:
    return shown(" ".join(str(error).split()), 600)


def _empty_weights(model: onnx.ModelProto) -> None:
    """Replace tensors in files by empty ones of the same type."""
    for tensor in all_tensors(model):
        if tensor.data_location == TensorProto.EXTERNAL:
            tensor.ClearField("external_data")
            tensor.ClearField("data_location")
            tensor.ClearField("dims")
            tensor.dims.append(0)


def _give_shapes(model: onnx.ModelProto) -> None:
    for graph in all_graphs(model):
        for value in (*getattr(graph, "input", ()), *getattr(graph, "output", ())):
            if hasattr(value, "type") and value.type.HasField("tensor_type"):
                value.type.tensor_type.shape.SetInParent()


def _short_weights(model: onnx.ModelProto) -> Iterator[str]:
    for tensor in all_tensors(model):
        length = next((entry.value for entry in tensor.external_data if entry.key == "length"), "")
        if not length.isdigit() or any(dim < 0 for dim in tensor.dims):
            continue
        try:
            needed = packed_nbytes(dtype_name(tensor.data_type), tensor.dims)
        except UsageError:  # an invalid type: the checker reports it
            continue
        if int(length) < needed:
            yield (
                f"TensorProto (tensor name: {shown(tensor.name, 200)}) raw_data size ({length} bytes) is too small "
                f"for the declared shape and type ({needed} bytes required)."
            )


def _any_operators(model: onnx.ModelProto) -> None:
    """Replace every operator by one without a schema; bodies stay, and are checked."""
    model.opset_import.add(domain=_ANY, version=1)
    for graph in all_graphs(model):
        for node in graph.node:
            node.op_type, node.domain = "Any", _ANY
            bodies = [attribute for attribute in node.attribute if attribute.type in _GRAPHS]
            del node.attribute[:]
            node.attribute.extend(bodies)
