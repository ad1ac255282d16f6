"""Engines and networks as graphs in ONNX's format, for viewing only. Layers are nodes of the domain "trt"."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from layerwise._tool.backends.tensors import to_onnx
from layerwise._tool.backends.trt.inspect.engine import EngineView
from layerwise._tool.backends.trt.inspect.layers import Layer, LayerTensor
from layerwise._tool.backends.trt.inspect.network import NetworkView

DOMAIN = "trt"
WEIGHT_LIMIT = 1 << 20  # bytes; larger weights appear by type and shape only


def network_picture(view: NetworkView) -> onnx.ModelProto:
    """Return the layers of a network, with their attributes; weights of up to 1 MiB are included as tensors."""
    return _picture(view.name, view.inputs, view.outputs, view.layers)


def engine_picture(view: EngineView) -> onnx.ModelProto:
    """Return the layers of an engine's first profile."""
    ends = {tensor.name: LayerTensor(tensor.name, tensor.dtype, tensor.shape) for tensor in view.tensors}
    inputs = [ends[tensor.name] for tensor in view.tensors if tensor.is_input]
    outputs = [ends[tensor.name] for tensor in view.tensors if not tensor.is_input]
    return _picture(view.name, inputs, outputs, view.layers[0] if view.layers else [])


def _picture(
    name: str, inputs: Iterable[LayerTensor], outputs: Iterable[LayerTensor], layers: Iterable[Layer]
) -> onnx.ModelProto:
    names, graph = _Names(tensor.name for tensor in inputs), onnx.GraphProto(name=name or "network")
    graph.input.extend(_value(tensor, tensor.name) for tensor in inputs)
    for layer in layers:
        reads = [names.now(tensor.name) for tensor in layer.inputs]
        makes = [(names.new(tensor.name), tensor) for tensor in layer.outputs]
        graph.node.add(
            name=layer.name, op_type=layer.kind, domain=DOMAIN, input=reads, output=[made for made, _ in makes],
            attribute=list(_attributes(layer)),
        )  # fmt: skip
        graph.value_info.extend(_value(tensor, made) for made, tensor in makes)
    graph.output.extend(_value(tensor, names.now(tensor.name)) for tensor in outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid(DOMAIN, 1)], ir_version=9)


class _Names:
    """Unique names of tensors: an engine may write one tensor in several layers."""

    def __init__(self, given: Iterable[str]) -> None:
        self._count = Counter(given)

    def now(self, name: str) -> str:
        """Return the current name of the tensor that was last made under this name."""
        return name if self._count[name] < 2 else f"{name} #{self._count[name]}"

    def new(self, name: str) -> str:
        """Return the name for the next tensor made under it."""
        self._count[name] += 1
        return self.now(name)


def _value(tensor: LayerTensor, name: str) -> onnx.ValueInfoProto:
    value = onnx.ValueInfoProto(name=name)
    if tensor.dtype:
        shape = None if tensor.shape is None else [None if size < 0 else size for size in tensor.shape]
        value.type.CopyFrom(helper.make_tensor_type_proto(to_onnx(tensor.dtype), shape))
    return value


def _attributes(layer: Layer) -> Iterator[onnx.AttributeProto]:
    found = {**layer.attributes, **({"nodes": ", ".join(layer.nodes)} if layer.nodes else {})}
    for name, value in found.items():
        if isinstance(value, np.ndarray) and value.nbytes <= WEIGHT_LIMIT:
            yield helper.make_attribute(name, numpy_helper.from_array(value, name))
        elif value is not None:
            yield helper.make_attribute(name, _plain(value))


def _plain(value: Any) -> Any:
    """Return a value in a type that ONNX attributes support; anything else as text."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value if isinstance(value, float) or abs(value) < 1 << 63 else str(value)
    whole = isinstance(value, list | tuple) and all(isinstance(item, int) and abs(item) < 1 << 63 for item in value)
    return [int(item) for item in value] if whole and value else str(value)
