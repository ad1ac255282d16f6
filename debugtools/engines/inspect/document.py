"""Engines and networks as JSON values."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.trt.inspect.engine import EngineView, Profile
from layerwise._tool.backends.trt.inspect.layers import Layer, LayerTensor
from layerwise._tool.backends.trt.inspect.network import NetworkView

VALUE_LIMIT = 1000


def engine_document(view: EngineView, show: Collection[str], notes: Mapping[str, str]) -> dict[str, Any]:
    """Return all of an engine; layers according to `show` ("layers", "attrs")."""
    found: dict[str, Any] = {
        "kind": "engine",
        "name": view.name,
        "refittable": view.refittable,
        "inputs": [_io(view, index) for index, tensor in enumerate(view.tensors) if tensor.is_input],
        "outputs": [_io(view, index) for index, tensor in enumerate(view.tensors) if not tensor.is_input],
        "device_memory": view.memory,
        "weights": view.weights,
        "streamable_weights": view.streamable,
        "profiles": [_profile(profile) for profile in view.profiles],
        "build": dict(view.facts),
        "n_layers": [len(layers) for layers in view.layers],
    }
    if "layers" in show:
        found["layers"] = [[_layer(layer, show, notes) for layer in layers] for layers in view.layers]
    return found


def network_document(view: NetworkView, show: Collection[str]) -> dict[str, Any]:
    """Return all of a network; layers by `show` ("layers", "attrs", "weights": values of up to 1000 elements)."""
    found: dict[str, Any] = {
        "kind": "network",
        "name": view.name,
        "strongly_typed": view.strongly_typed,
        "inputs": [_tensor(tensor, {}) for tensor in view.inputs],
        "outputs": [_tensor(tensor, {}) for tensor in view.outputs],
        "n_layers": len(view.layers),
    }
    if "layers" in show:
        found["layers"] = [_layer(layer, show, {}) for layer in view.layers]
    elif "weights" in show:
        found["weights"] = [
            {"layer": layer.name, "role": name, **_array(value, True)}
            for layer in view.layers
            for name, value in layer.attributes.items()
            if isinstance(value, np.ndarray)
        ]
    return found


def _io(view: EngineView, index: int) -> dict[str, Any]:
    tensor = view.tensors[index]
    return {
        "name": tensor.name, "index": index, "dtype": tensor.dtype, "shape": list(tensor.shape),
        "location": "host" if tensor.host else "device", "format": view.formats.get(tensor.name),
    }  # fmt: skip


def _profile(profile: Profile) -> dict[str, Any]:
    spans = {
        span.name: {"min": list(span.min), "opt": list(span.opt), "max": list(span.max), "values": span.values}
        for span in profile.inputs
    }
    return {"inputs": spans, "device_memory": profile.memory}


def _layer(layer: Layer, show: Collection[str], notes: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": layer.name,
        "kind": layer.kind,
        "inputs": [_tensor(tensor, notes) for tensor in layer.inputs],
        "outputs": [_tensor(tensor, notes) for tensor in layer.outputs],
        "nodes": layer.nodes,
    }
    if "attrs" in show:
        found["attributes"] = {name: _value(value, "weights" in show) for name, value in layer.attributes.items()}
    return found


def _tensor(tensor: LayerTensor, notes: Mapping[str, str]) -> dict[str, Any]:
    shape = None if tensor.shape is None else list(tensor.shape)
    found = {"name": tensor.name, "dtype": tensor.dtype or None, "shape": shape}
    found |= {"format": tensor.format} if tensor.format else {}
    return found | ({"values": notes[tensor.name]} if tensor.name in notes else {})


def _value(value: Any, with_values: bool) -> Any:
    return _array(value, with_values) if isinstance(value, np.ndarray) else value


def _array(array: np.ndarray[Any, Any], with_values: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"dtype": dtype_name(array), "shape": list(array.shape)}
    if with_values and array.size <= VALUE_LIMIT:
        found["values"] = (array if array.dtype.kind in "biuf" else array.astype(np.float64)).tolist()
    return found
