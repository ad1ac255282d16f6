"""Nodes with FP64 in place of every other floating type.

FP8 and smaller types stay: a conversion to them is what quantising a value means.
"""

from collections.abc import Iterable

import numpy as np
import onnx
from onnx import AttributeProto, TensorProto

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.tensors import dtype_name

_ROUNDING = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16})
_NAMES = frozenset({"float32", "float16", "bfloat16"})
_TYPES = frozenset({"to", "dtype", "output_datatype", "output_dtype"})


def double(array: Array) -> Array:
    """Return an array in FP64 if it is in FP32, FP16 or bfloat16; any other as it is."""
    return array.astype(np.float64) if dtype_name(array) in _NAMES else array


def double_node(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return a copy of a node, its bodies too, that computes in FP64. BadFile for a damaged constant."""
    wide = onnx.NodeProto()
    wide.CopyFrom(node)
    for attribute in wide.attribute:
        _widen(attribute)
    if node.op_type == "ConstantOfShape" and not node.attribute:
        zero = onnx.numpy_helper.from_array(np.zeros(1))
        wide.attribute.append(onnx.helper.make_attribute("value", zero))
    if node.op_type == "Constant":
        _widen_constant(wide)
    return wide


def double_functions(functions: Iterable[onnx.FunctionProto]) -> list[onnx.FunctionProto]:
    """Return copies of a model's functions that compute in FP64."""
    found = []
    for function in functions:
        wide = onnx.FunctionProto()
        wide.CopyFrom(function)
        del wide.node[:]
        wide.node.extend(map(double_node, function.node))
        found.append(wide)
    return found


def _widen(attribute: AttributeProto) -> None:
    if attribute.type == AttributeProto.TENSOR:
        attribute.t.CopyFrom(_tensor(attribute.t))
    elif attribute.type == AttributeProto.INT and attribute.name in _TYPES and attribute.i in _ROUNDING:
        attribute.i = TensorProto.DOUBLE
    elif attribute.type == AttributeProto.GRAPH:
        _widen_graph(attribute.g)
    elif attribute.type == AttributeProto.GRAPHS:
        for graph in attribute.graphs:
            _widen_graph(graph)


def _widen_constant(node: onnx.NodeProto) -> None:
    """A constant that is written as plain numbers is FP32, whatever its attribute says."""
    for attribute in node.attribute:
        if attribute.name in ("value_float", "value_floats"):
            values = np.float64(attribute.f) if attribute.name == "value_float" else np.array(attribute.floats, "f8")
            attribute.CopyFrom(onnx.helper.make_attribute("value", onnx.numpy_helper.from_array(np.asarray(values))))


def _widen_graph(graph: onnx.GraphProto) -> None:
    nodes = [double_node(node) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    for tensor in graph.initializer:
        tensor.CopyFrom(_tensor(tensor))
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type in _ROUNDING:
            value.type.tensor_type.elem_type = TensorProto.DOUBLE


def _tensor(tensor: TensorProto) -> TensorProto:
    if tensor.data_type not in _ROUNDING or tensor.data_location == TensorProto.EXTERNAL:
        return tensor
    return onnx.numpy_helper.from_array(double(tensor_array(tensor)), tensor.name)
