"""ILayer and the layers that can be added by call, each as the ONNX nodes that compute it."""

from typing import Any

import numpy as np
import onnx
from onnx import helper

from . import _emit
from ._arguments import CLASSES
from ._classes import _ZERO, behaves, new
from ._types import dtype_of_onnx, onnx_of
from ._values import weights


class Unsupported(Exception):
    """The fake cannot run this layer."""


def emitted(layer: Any) -> tuple[list[onnx.NodeProto], list[onnx.TensorProto]]:
    """The ONNX nodes and constants of a layer, on inner ids."""
    outputs = [tensor._id for tensor in layer.outputs]
    if layer.node is not None:
        node = onnx.NodeProto()
        node.CopyFrom(layer.node)
        for slot, tensor in zip(layer.slots, layer.inputs, strict=True):
            node.input[slot] = tensor._id
        return [node], []
    maker = getattr(_emit, layer.kind.lower(), None)
    if maker is None:
        raise Unsupported(f"the fake TensorRT cannot run a layer of type {layer.kind} added by call")
    plan = _emit.Plan(layer, [tensor._id if tensor is not None else "" for tensor in layer.inputs], outputs)
    maker(plan)
    return plan.nodes, plan.constants


def inferred(layer: Any) -> list[tuple[Any, tuple[int, ...]]]:
    """Type and shape of each output of a layer added by call, from ONNX's shape inference over this one layer."""
    nodes, constants = emitted(layer)
    inputs = []
    for tensor in layer.inputs:
        producer = tensor._layer if tensor is not None else None
        if producer is not None and producer.kind == "CONSTANT":
            made, values = emitted(producer)
            nodes, constants = made + nodes, constants + values
        elif tensor is not None:
            kind, shape = tensor._typed()
            known = [f"{tensor._id}_{at}" if size < 0 else size for at, size in enumerate(shape)]
            inputs.append(helper.make_tensor_value_info(tensor._id, onnx_of(kind), known))
    if layer.kind == "CONSTANT":
        return [(layer.values["weights"]._dtype, tuple(layer.values["shape"]))]
    outputs = [onnx.ValueInfoProto(name=tensor._id) for tensor in layer.outputs]
    graph = helper.make_graph(nodes, "layer", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=layer.network._opsets, ir_version=10)
    done = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    return [_typed(value) for value in done.output]


def _typed(value: onnx.ValueInfoProto) -> tuple[Any, tuple[int, ...]]:
    tensor = value.type.tensor_type
    shape = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim)
    return dtype_of_onnx(tensor.elem_type or 1), shape


@behaves("ILayer")
class _ILayer:
    _state: Any

    name = property(lambda self: self._state.name, lambda self, v: setattr(self._state, "name", v))
    num_inputs = property(lambda self: len(self._state.inputs))
    num_outputs = property(lambda self: len(self._state.outputs))
    type = property(lambda self: getattr(CLASSES["LayerType"], self._state.kind))
    metadata = property(
        lambda self: self._state.values.get("metadata", ""), lambda self, v: self._state.values.update(metadata=v)
    )
    precision = property(
        lambda self: self._state.values.get("precision", CLASSES["DataType"].FLOAT),
        lambda self, v: self._state.values.update(precision=v),
    )
    precision_is_set = property(lambda self: "precision" in self._state.values)

    def reset_precision(self) -> None:
        self._state.values.pop("precision", None)

    def get_input(self, index: int) -> Any:
        return self._state.inputs[index] if 0 <= index < len(self._state.inputs) else None

    def get_output(self, index: int) -> Any:
        return self._state.outputs[index] if 0 <= index < len(self._state.outputs) else None

    def set_input(self, index: int, tensor: Any) -> None:
        inputs = self._state.inputs
        self._state.network._edits += 1
        if index >= len(inputs):
            inputs.extend([None] * (index + 1 - len(inputs)))
        inputs[index] = tensor

    def get_output_type(self, index: int) -> Any:
        return self._state.output_types.get(index, self._state.outputs[index].dtype)

    def set_output_type(self, index: int, dtype: Any) -> None:
        self._state.output_types[index] = dtype

    def output_type_is_set(self, index: int) -> bool:
        return index in self._state.output_types

    def reset_output_type(self, index: int) -> None:
        self._state.output_types.pop(index, None)


class _Values:
    """Reads and writes the shared state, so that every wrapper of a layer sees the same."""

    def __init__(self, name: str) -> None:
        self.name = name

    def get(self, item: Any) -> Any:
        """The value set, or the zero of the recorded type."""
        kind = item._kinds.get(self.name)
        value = item._state.values.get(self.name, _ZERO.get(kind))
        if value is None and kind in CLASSES and hasattr(CLASSES[kind], "_members"):
            return CLASSES[kind](0)
        if kind == "object" and isinstance(value, CLASSES["Weights"]):
            return value._array
        return value

    def put(self, item: Any, value: Any) -> None:
        """Set it."""
        if isinstance(value, np.ndarray):
            value = weights(value)
        if item._state.node is not None:
            raise NotImplementedError(f"the fake TensorRT cannot change {self.name} of a layer made of an ONNX node")
        item._state.values[self.name] = value


def share(recorded: dict[str, Any]) -> None:
    """Give every recorded layer class properties over the shared state."""
    for name, entry in recorded.items():
        if "ILayer" not in entry.get("bases", ()):
            continue
        names = set(entry.get("get", {})) | set(entry.get("set", ()))
        space = {prop: property(_Values(prop).get, _Values(prop).put) for prop in names}
        behaves(name)(type(f"_{name}", (_ILayer,), space))


class Adders:
    """The add_* calls of INetworkDefinition."""

    def _add(self, kind: str, inputs: list[Any], outputs: int = 1, **values: Any) -> Any:
        from ._network import Layer

        label = f"(Unnamed Layer* {len(self._layers)}) [{_shown(kind)}]"
        layer = Layer(self, label, kind, list(inputs), values=values)
        self._layers.append(layer)
        layer.outputs = [
            self._tensor(f"{label}_output" + (f"_{at}" if at else ""), None, layer, at) for at in range(outputs)
        ]
        return new(_emit.CLASS_OF.get(kind, "ILayer"), _state=layer)

    def add_identity(self, input: Any) -> Any:
        return self._add("IDENTITY", [input])

    def add_constant(self, shape: Any, weights: Any) -> Any:
        return self._add("CONSTANT", [], shape=shape, weights=weights)

    def add_elementwise(self, input1: Any, input2: Any, op: Any) -> Any:
        return self._add("ELEMENTWISE", [input1, input2], op=op)

    def add_unary(self, input: Any, op: Any) -> Any:
        return self._add("UNARY", [input], op=op)

    def add_activation(self, input: Any, type: Any) -> Any:
        return self._add("ACTIVATION", [input], type=type)

    def add_matrix_multiply(self, input0: Any, op0: Any, input1: Any, op1: Any) -> Any:
        return self._add("MATRIX_MULTIPLY", [input0, input1], op0=op0, op1=op1)

    def add_convolution_nd(self, input: Any, num_output_maps: int, kernel_shape: Any, kernel: Any, bias: Any) -> Any:
        return self._add(
            "CONVOLUTION", [input], num_output_maps=num_output_maps, kernel_size_nd=kernel_shape, kernel=kernel,
            bias=bias, num_groups=1,
        )  # fmt: skip

    def add_softmax(self, input: Any) -> Any:
        rank = len(input.shape)
        return self._add("SOFTMAX", [input], axes=1 << (1 if rank > 3 or rank == 2 else 0))

    def add_reduce(self, input: Any, op: Any, axes: int, keep_dims: bool) -> Any:
        return self._add("REDUCE", [input], op=op, axes=axes, keep_dims=keep_dims)

    def add_shuffle(self, input: Any) -> Any:
        return self._add("SHUFFLE", [input], zero_is_placeholder=True)

    def add_cast(self, input: Any, to_type: Any) -> Any:
        return self._add("CAST", [input], to_type=to_type)

    def add_concatenation(self, inputs: list[Any]) -> Any:
        return self._add("CONCATENATION", inputs, axis=1 if len(inputs[0].shape) > 1 else 0)

    def add_slice(self, input: Any, start: Any, shape: Any, stride: Any) -> Any:
        return self._add("SLICE", [input], start=start, shape=shape, stride=stride)

    def add_shape(self, input: Any) -> Any:
        return self._add("SHAPE", [input])

    def add_non_zero(self, input: Any, *indices_type: Any) -> Any:
        return self._add("NON_ZERO", [input], indices_type=indices_type[0] if indices_type else None)

    def add_gather(self, input: Any, indices: Any, axis: int) -> Any:
        return self._add("GATHER", [input, indices], axis=axis)

    def add_select(self, condition: Any, then_input: Any, else_input: Any) -> Any:
        return self._add("SELECT", [condition, then_input, else_input])

    def add_pooling_nd(self, input: Any, type: Any, window_size: Any) -> Any:
        return self._add("POOLING", [input], type=type, window_size_nd=window_size)

    def add_topk(self, input: Any, op: Any, k: int, axes: int, *indices_type: Any) -> Any:
        return self._add("TOPK", [input], 2, op=op, k=k, axes=axes)

    def add_quantize(self, input: Any, scale: Any, *output_type: Any) -> Any:
        return self._add("QUANTIZE", [input, scale], to_type=output_type[0] if output_type else None)

    def add_dequantize(self, input: Any, scale: Any, *output_type: Any) -> Any:
        return self._add("DEQUANTIZE", [input, scale], to_type=output_type[0] if output_type else None)


def _shown(kind: str) -> str:
    return "".join(word.capitalize() for word in kind.split("_")).replace("Elementwise", "ElementWise")
