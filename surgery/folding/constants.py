"""Constants of a graph: weights, Constant nodes as weights, and small values as numbers."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.surgery.model.structure import Graph, changed

_SMALL = 4096  # elements; shapes, axes and indices are far smaller


def constants_as_weights(graph: Graph) -> Graph:
    """Return the graph with Constant nodes as initializers, except sparse ones and references to attributes."""
    weights: dict[str, TensorProto] = {}
    kept: list[onnx.NodeProto] = []
    for node in graph.nodes:
        tensor = constant_value(node)
        if tensor is None:
            kept.append(node)
        else:
            weights[tensor.name] = tensor
    if not weights:
        return graph
    return graph.with_(nodes=tuple(kept), initializers={**graph.initializers, **weights})


def weights_as_constants(graph: Graph) -> Graph:
    """Return a function's body with its initializers, which are not allowed there, as leading Constant nodes."""
    made = [
        helper.make_node("Constant", [], [name], value=changed(tensor, name=""))
        for name, tensor in graph.initializers.items()
    ]
    return graph.with_(nodes=(*made, *graph.nodes), initializers={})


def constant_value(node: onnx.NodeProto) -> TensorProto | None:
    """Return the tensor of a Constant node, under its output's name; None if it is not a dense tensor."""
    if node.op_type != "Constant" or node.domain not in ("", "ai.onnx") or len(node.attribute) != 1:
        return None
    attribute, name = node.attribute[0], node.output[0]
    if attribute.ref_attr_name:
        return None
    if attribute.name == "value":
        tensor: TensorProto = changed(attribute.t, name=name)
        return tensor
    value = helper.get_attribute_value(attribute)
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    if attribute.name in kinds:
        return numpy_helper.from_array(np.array(value, kinds[attribute.name]), name)
    if attribute.name in ("value_string", "value_strings"):
        many = [value] if isinstance(value, bytes) else list(value)
        dims = [] if isinstance(value, bytes) else [len(many)]
        return TensorProto(name=name, data_type=TensorProto.STRING, dims=dims, string_data=many)
    return None


def weight(graph: Graph, name: str) -> TensorProto | None:
    """Return the initializer that `name` refers to in a graph: its own, or an outer one that is not shadowed."""
    known = graph.initializers.get(name)
    if known is not None or graph.outer is None or graph.defines(name):
        return known
    return weight(graph.outer, name)


def numbers(graph: Graph, name: str, folder: Path | None) -> Sequence[int] | None:
    """Return the integers of a small weight, flat; None if it is not one."""
    tensor = weight(graph, name)
    if tensor is None or tensor.data_type not in (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL):
        return None
    if np.prod(tensor.dims, dtype=float) > _SMALL:
        return None
    return [int(value) for value in tensor_array(tensor, folder).reshape(-1)]
