"""Reads a network before it is built: inputs, outputs, layers with their attributes and weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from layerwise._tool.backends.trt.capabilities import able
from layerwise._tool.backends.trt.inference.engine import NUMPY_NAMES
from layerwise._tool.backends.trt.inspect.layers import EngineLayer, LayerTensor, metadata_nodes
from layerwise._tool.backends.wording import in_words

_BY_INPUT = {"IResizeLayer": ("scales", "shape"), "ISliceLayer": ("shape", "start", "stride")}


@dataclass(frozen=True)
class NetworkView:
    """A network's contents. strongly_typed: its tensors have the types that the model states."""

    name: str
    strongly_typed: bool
    inputs: list[LayerTensor]
    outputs: list[LayerTensor]
    layers: list[EngineLayer]


def network_view(trt: Any, network: Any) -> NetworkView:
    """Read an INetworkDefinition. Weights are NumPy arrays among the layers' attributes, sharing TensorRT's memory."""
    classes, names = layer_classes(trt), _Names(trt)
    flags = trt.NetworkDefinitionCreationFlag
    typed = not able(trt, "typed_by_flag") or network.get_flag(flags.STRONGLY_TYPED)
    return NetworkView(
        name=network.name,
        strongly_typed=bool(typed),
        inputs=[_tensor(network.get_input(at)) for at in range(network.num_inputs)],
        outputs=[_tensor(network.get_output(at)) for at in range(network.num_outputs)],
        layers=[_layer(network.get_layer(at), classes, names) for at in range(network.num_layers)],
    )


def layer_classes(trt: Any) -> dict[str, type]:
    """Return LayerType's names with their layer classes; names that no layer has any more are omitted."""
    found = {}
    for kind in (kind for kind in vars(trt).values() if isinstance(kind, type) and issubclass(kind, trt.ILayer)):
        found[kind.__name__.removeprefix("I").removesuffix("EngineLayer").upper()] = kind
    plain = {name: name.replace("_", "") for name in trt.LayerType.__members__}
    return {name: found.get(word) or found[f"IF{word}"] for name, word in plain.items()
            if word in found or f"IF{word}" in found}  # fmt: skip


class _Names:
    """Attributes of a layer class in addition to those of all layers."""

    def __init__(self, trt: Any) -> None:
        self._base, self._common = trt.ILayer, set(dir(trt.ILayer))
        self._found: dict[type, list[str]] = {}

    def of(self, layer: Any, inputs: int) -> list[str]:
        """Return attribute names; of two ways to state a value (by input or by attribute), the one in use."""
        kind = type(layer)
        if kind not in self._found:
            self._found[kind] = [name for name in dir(layer) if self._own(kind, name)]
        said = _BY_INPUT.get(kind.__name__, ()) if inputs > 1 else ()
        return [name for name in self._found[kind] if name not in said]

    def _own(self, kind: type, name: str) -> bool:
        new = name not in self._common or (kind is not self._base and name in vars(kind))
        return new and isinstance(getattr(kind, name, None), property)


def _layer(layer: Any, classes: dict[str, type], names: _Names) -> EngineLayer:
    kind = layer.type.name
    if kind in classes:
        layer.__class__ = classes[kind]
    inputs = _tensors(layer.get_input, layer.num_inputs)
    outputs = _tensors(layer.get_output, layer.num_outputs)
    attributes = {name: _value(layer, name) for name in names.of(layer, len(inputs))}
    return EngineLayer(layer.name, kind, inputs, outputs, metadata_nodes(layer.metadata or ""), attributes)


def _value(layer: Any, name: str) -> Any:
    try:
        return plain(getattr(layer, name))
    except Exception as error:  # pybind11 raises any C++ exception for a value that was never set
        return f"<not to be read: {in_words(error, 120)}>"


def plain(value: Any) -> Any:
    """Return a TensorRT value as a Python one: enumerators by name, sizes as a tuple, weights as an array."""
    if value is None or isinstance(value, bool | int | float | str | np.ndarray):
        return value
    if hasattr(type(value), "__members__"):
        return f"{type(value).__name__}.{value.name}"
    if hasattr(value, "numpy") and hasattr(value, "nbytes"):
        return value.numpy() if value.size else np.zeros(0, np.float32)
    if hasattr(value, "plugin_type"):
        return f"{value.plugin_type} {value.plugin_version}"
    try:
        return tuple(plain(item) for item in value)
    except (TypeError, ValueError):  # not a sequence, or sizes of unknown rank
        return "unknown" if type(value).__name__ == "Dims" else type(value).__name__


def _tensors(get: Callable[[int], Any], count: int) -> list[LayerTensor]:
    """Return the tensors that exist: optional ones may be missing."""
    return [_tensor(tensor) for tensor in map(get, range(count)) if tensor is not None]


def _tensor(tensor: Any) -> LayerTensor:
    return LayerTensor(tensor.name, NUMPY_NAMES[tensor.dtype.name], shape_of(tensor))


def shape_of(tensor: Any) -> tuple[int, ...] | None:
    """Return the sizes of a tensor, -1 for a dynamic one; None if even the rank is unknown."""
    try:
        return tuple(tensor.shape)
    except ValueError:  # len() of Dims of rank -1
        return None
