"""INetworkDefinition and ITensor. Tensors keep an inner id; names appear only where the network meets the world."""

from dataclasses import dataclass, field
from typing import Any

import onnx
from onnx import helper

from . import _layers
from ._classes import behaves, new
from ._shape_tensors import shape_ids
from ._types import dtype_of_onnx, onnx_of
from ._values import dims


@dataclass
class Layer:
    """What a layer is, whichever wrapper class shows it."""

    network: Any
    name: str
    kind: str
    inputs: list[Any]
    outputs: list[Any] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    node: onnx.NodeProto | None = None
    slots: list[int] = field(default_factory=list)
    output_types: dict[int, Any] = field(default_factory=dict)


@behaves("ITensor")
class _Tensor:
    _layer: Layer | None
    _id: str
    _at: int

    def _typed(self) -> tuple[Any, tuple[int, ...]]:
        if self._fixed is None:
            return _layers.inferred(self._layer)[self._at]
        return self._fixed

    def _retype(self, kind: Any) -> None:
        self._fixed = (kind, self._typed()[1])

    dtype = property(lambda self: self._typed()[0], _retype)
    shape = property(
        lambda self: dims(self._typed()[1]), lambda self, v: setattr(self, "_fixed", (self._typed()[0], tuple(v)))
    )
    name = property(lambda self: self._name, lambda self, v: setattr(self, "_name", v))
    is_network_input = property(lambda self: self in self._network._inputs)
    is_network_output = property(lambda self: self in self._network._outputs)
    is_execution_tensor = property(lambda self: not self.is_shape_tensor)
    allowed_formats = property(lambda self: self._values.get("allowed_formats", 1), lambda self, v: None)

    @property
    def is_shape_tensor(self) -> bool:
        return self._id in shape_ids(self._network)

    def get_dimension_name(self, index: int) -> str:
        return str(self._values.get(("dimension", index), ""))

    def set_dimension_name(self, index: int, name: str) -> None:
        self._values[("dimension", index)] = name


@behaves("INetworkDefinition")
class _Network(_layers.Adders):
    _inputs: list[Any]
    _outputs: list[Any]
    _layers: list[Layer]
    _flags: int

    num_inputs = property(lambda self: len(self._inputs))
    num_outputs = property(lambda self: len(self._outputs))
    num_layers = property(lambda self: len(self._layers))
    flags = property(lambda self: self._flags)
    builder = property(lambda self: self._builder)
    has_implicit_batch_dimension = property(lambda self: False)

    def __len__(self) -> int:
        return len(self._layers)

    def __getitem__(self, index: int) -> Any:
        return self._view(index)

    def get_layer(self, index: int) -> Any:
        return self._view(index)

    def _view(self, index: int) -> Any:
        """As in the real module a layer comes back as ILayer; a caller sets `__class__` to reach more."""
        if not 0 <= index < len(self._layers):
            raise IndexError(f"layer {index} of {len(self._layers)}")
        return new("ILayer", _state=self._layers[index])

    def get_input(self, index: int) -> Any:
        return self._inputs[index] if 0 <= index < len(self._inputs) else None

    def get_output(self, index: int) -> Any:
        return self._outputs[index] if 0 <= index < len(self._outputs) else None

    def get_flag(self, flag: Any) -> bool:
        return bool(self._flags >> int(flag) & 1)

    def add_input(self, name: str, dtype: Any, shape: Any) -> Any:
        if any(tensor._name == name for tensor in self._inputs):
            return None
        tensor = self._tensor(name, (dtype, tuple(shape)))
        self._inputs.append(tensor)
        return tensor

    def _tensor(self, name: str, fixed: Any, layer: Layer | None = None, at: int = 0) -> Any:
        inner = name if name not in self._ids else f"{name}#{len(self._ids)}"
        tensor = new("ITensor", _id=inner, _name=name, _fixed=fixed, _network=self, _layer=layer, _at=at)
        self._ids[inner] = tensor
        return tensor

    def mark_output(self, tensor: Any) -> None:
        if tensor not in self._outputs:
            self._outputs.append(tensor)

    def unmark_output(self, tensor: Any) -> None:
        self._outputs.remove(tensor)

    def mark_output_for_shapes(self, tensor: Any) -> bool:
        self._shape_outputs.append(tensor)
        return True

    def unmark_output_for_shapes(self, tensor: Any) -> bool:
        self._shape_outputs.remove(tensor)
        return True

    def remove_tensor(self, tensor: Any) -> None:
        for group in (self._inputs, self._outputs):
            if tensor in group:
                group.remove(tensor)

    def mark_debug(self, tensor: Any) -> bool:
        self._debug[tensor._id] = tensor
        return True

    def unmark_debug(self, tensor: Any) -> bool:
        return self._debug.pop(tensor._id, None) is not None

    def is_debug_tensor(self, tensor: Any) -> bool:
        return tensor._id in self._debug

    def mark_unfused_tensors_as_debug_tensors(self) -> bool:
        self._unfused = True
        return True

    def unmark_unfused_tensors_as_debug_tensors(self) -> bool:
        self._unfused = False
        return True

    def set_weights_name(self, weights: Any, name: str) -> bool:
        weights._named = name
        return True

    def mark_weights_refittable(self, name: str) -> bool:
        self._refittable.add(name)
        return name in self._initializers

    def unmark_weights_refittable(self, name: str) -> bool:
        self._refittable.discard(name)
        return True

    def are_weights_marked_refittable(self, name: str) -> bool:
        return name in self._refittable

    def _onnx(self) -> onnx.ModelProto:
        """The network as an ONNX model: inner ids inside, public names at the borders.

        Raises:
            _layers.Unsupported: a layer is one that the fake cannot run.
        """
        nodes, initializers = [], dict(self._initializers)
        for tensor in self._inputs:
            if tensor._name != tensor._id:
                nodes.append(helper.make_node("Identity", [tensor._name], [tensor._id]))
        for layer in self._layers:
            made, constants = _layers.emitted(layer)
            nodes += made
            initializers |= {constant.name: constant for constant in constants}
        for tensor in self._outputs:
            if tensor._name != tensor._id:
                nodes.append(helper.make_node("Identity", [tensor._id], [tensor._name]))
        graph = helper.make_graph(
            nodes, self.name or "network", [_info(t) for t in self._inputs], [_info(t) for t in self._outputs],
            list(initializers.values()),
        )  # fmt: skip
        graph.value_info.extend(_info(t, t._id) for t in self._debug.values())
        model = helper.make_model(graph, opset_imports=self._opsets, ir_version=10)
        model.functions.extend(self._functions)
        return model


def _info(tensor: Any, name: str = "") -> onnx.ValueInfoProto:
    kind, shape = tensor._typed()
    known = [f"{tensor._name}_{at}" if size < 0 else size for at, size in enumerate(shape)]
    return helper.make_tensor_value_info(name or tensor._name, onnx_of(kind), known)


def network(builder: Any, flags: int) -> Any:
    """An empty INetworkDefinition."""
    made = new(
        "INetworkDefinition", _builder=builder, _flags=flags, _inputs=[], _outputs=[], _layers=[], _ids={}, _debug={},
        _unfused=False, _shape_outputs=[], _refittable=set(), _initializers={}, _functions=[],
        _edits=0, _shape_ids=None, _opsets=[helper.make_opsetid("", 20)], _location="",
    )  # fmt: skip
    made._values["name"] = "Unnamed Network 0"
    return made


def fixed(value: onnx.ValueInfoProto | None) -> Any:
    """DataType and shape (-1 where dynamic) of an inferred ONNX value; None where the rank is not known."""
    if value is None or not value.type.tensor_type.HasField("shape"):
        return None
    tensor = value.type.tensor_type
    shape = tuple(d.dim_value if d.HasField("dim_value") else -1 for d in tensor.shape.dim)
    return dtype_of_onnx(tensor.elem_type), shape
