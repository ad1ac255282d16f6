"""Engines and networks as text in Polygraphy's layout, and as graphs in ONNX's format, for viewing only.

Beyond Polygraphy: weights and streamable bytes, device memory of each profile, values of shape tensors, build options,
the layers of every profile, the ONNX nodes of a layer, all inspector output for it. In a graph layers are nodes of the
domain "trt".
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from layerwise._tool.backends.tensors import format_array, to_onnx
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inspect.engine import EngineView, Profile, Span
from layerwise._tool.backends.trt.inspect.layers import EngineLayer, LayerTensor
from layerwise._tool.backends.trt.inspect.network import NetworkView
from layerwise._tool.surgery.inspect.text import TAB, body, braced, entry_lines, indented

_UNSET = "Unknown"


def engine_lines(view: EngineView, show: Collection[str], notes: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of an engine, the first one a heading. notes: tensor -> remark next to it."""
    yield "==== TensorRT Engine ===="
    yield from body(_engine(view, show, notes))


def network_lines(view: NetworkView, show: Collection[str]) -> Iterator[str]:
    """Yield the lines of a network, the first one a heading."""
    yield "==== TensorRT Network ===="
    yield from body(_network(view, show))


def _engine(view: EngineView, show: Collection[str], notes: Mapping[str, str]) -> Iterator[str]:
    yield f"Name: {shown(view.name)} | {'Refittable ' if view.refittable else ''}Explicit Batch Engine"
    yield ""
    for word, inputs in (("Input", True), ("Output", False)):
        tensors = [LayerTensor(t.name, t.dtype, t.shape) for t in view.tensors if t.is_input == inputs]
        yield from _tensors(f"Engine {word}", tensors)
    yield "---- Memory ----"
    yield f"Device Memory: {view.memory} bytes"
    if view.weights is not None:
        yield f"Weights: {view.weights} bytes"
    if view.streamable:
        yield f"Streamable Weights: {view.streamable} bytes"
    yield ""
    yield from _profiles(view)
    yield "---- Build ----"
    yield from (f"{word}: {shown(value, 300)}" for word, value in view.facts.items())
    yield ""
    yield from _engine_layers(view, show, notes)


def _profiles(view: EngineView) -> Iterator[str]:
    yield f"---- {len(view.profiles)} Profile(s) ({len(view.tensors)} Tensor(s) Each) ----"
    width = max((len(shown(tensor.name)) for tensor in view.tensors), default=0) + 8
    for at, profile in enumerate(view.profiles):
        yield f"- Profile: {at}"
        yield from indented(_profile(view, profile, width), 1)
        if len(view.profiles) > 1:
            yield f"{TAB}Device Memory: {profile.memory} bytes"
        yield ""


def _profile(view: EngineView, profile: Profile, width: int) -> Iterator[str]:
    spans = {span.name: span for span in profile.inputs}
    for index, tensor in enumerate(view.tensors):
        label = " (Input)" if tensor.is_input else "(Output)"
        told = _span(spans[tensor.name]) if tensor.is_input else f"Shape: {tensor.shape}"
        yield f"Tensor: {shown(tensor.name):<{width}} {label}, Index: {index} | {told}"


def _span(span: Span) -> str:
    return f"{'Values' if span.values else 'Shapes'}: min={span.min}, opt={span.opt}, max={span.max}"


def _engine_layers(view: EngineView, show: Collection[str], notes: Mapping[str, str]) -> Iterator[str]:
    several = len(view.layers) > 1
    yield f"---- {max(map(len, view.layers), default=0)} Layer(s){' Per Profile' if several else ''} ----"
    for at, layers in enumerate(view.layers if "layers" in show else []):
        if several:
            yield f"- Profile: {at}"
        for index, layer in enumerate(layers):
            yield from indented(_engine_layer(view, layer, index, show, notes), int(several))


def _engine_layer(
    view: EngineView, layer: EngineLayer, index: int, show: Collection[str], notes: Mapping[str, str]
) -> Iterator[str]:
    yield from _layer(layer, index, layer.kind, notes)
    if "attrs" in show and view.detailed:
        known = dict(layer.attributes)
        tactic = known.pop("TacticValue", known.get("TacticName", _UNSET))
        yield f"{TAB}---- Attributes ----"
        yield f"{TAB}Origin = {shown(str(known.pop('Origin', _UNSET)), 300)}"
        yield f"{TAB}Tactic = {shown(str(tactic), 300)}"
        yield from (f"{TAB}{shown(key, 80)} = {_json(value)}" for key, value in known.items())
    yield ""


def _json(value: Any) -> str:
    return shown(value if isinstance(value, str) else json.dumps(value), 500)


def _network(view: NetworkView, show: Collection[str]) -> Iterator[str]:
    yield f"Name: {shown(view.name)} | Explicit Batch{' Strongly Typed' if view.strongly_typed else ''} Network"
    yield ""
    yield from _tensors("Network Input", view.inputs)
    yield from _tensors("Network Output", view.outputs)
    yield f"---- {len(view.layers)} Layer(s) ----"
    for index, layer in enumerate(view.layers if "layers" in show else []):
        kind = layer.attributes.get("type")  # which activation or pooling: TensorRT's classes have it there
        yield from _layer(layer, index, str(kind or f"LayerType.{layer.kind}"), {})
        if "attrs" in show and layer.attributes:
            yield f"{TAB}---- Attributes ----"
            for name, value in layer.attributes.items():
                if value is not None and name != "type":
                    yield from indented(_attribute(f"{shown(layer.name)}.{name}", value, show), 1)
        yield ""
    if "weights" in show and "attrs" not in show:
        yield from _weights(view, show)


def _weights(view: NetworkView, show: Collection[str]) -> Iterator[str]:
    found = [(f"{layer.name}.{name}", value) for layer in view.layers for name, value in layer.attributes.items()
             if isinstance(value, np.ndarray)]  # fmt: skip
    yield f"---- {len(found)} Weight(s) ----"
    for label, value in found:
        yield from _attribute(shown(label), value, show)
        yield ""


def _attribute(label: str, value: Any, show: Collection[str]) -> Iterator[str]:
    if not isinstance(value, np.ndarray):
        yield f"{label} = {shown(str(value), 500)}"
        return
    head = f"{label} = Weights: [dtype={value.dtype}, shape={value.shape}]"
    if "weights" not in show:
        yield head
        return
    yield f"{head} | Values:"
    yield from indented(format_array(value).splitlines(), 1)


def _tensors(word: str, tensors: list[LayerTensor]) -> Iterator[str]:
    yield f"---- {len(tensors)} {word}(s) ----"
    yield from braced(_labels(tensors, {}))
    yield ""


def _layer(layer: EngineLayer, index: int, kind: str, notes: Mapping[str, str]) -> Iterator[str]:
    head = f"Layer {index:<4} | {shown(layer.name)} [Op: {shown(kind)}]"
    yield from entry_lines(head, _labels(layer.inputs, notes), _labels(layer.outputs, notes))
    if layer.nodes and layer.nodes != [layer.name]:
        yield f"{TAB}ONNX Nodes: {shown(', '.join(layer.nodes), 1000)}"


def _labels(tensors: Iterable[LayerTensor], notes: Mapping[str, str]) -> list[str]:
    return [_label(tensor, notes.get(tensor.name, "")) for tensor in tensors]


def _label(tensor: LayerTensor, note: str) -> str:
    facts = [f"dtype={tensor.dtype}"] if tensor.dtype else []
    if tensor.shape is not None:
        facts.append(f"shape={tensor.shape}")
    if told := f"Format: {shown(tensor.format, 120)}" if tensor.format else "":
        facts.append(told)
    if note:
        facts.append(note)
    return f"{shown(tensor.name)} [{', '.join(facts)}]" if facts else shown(tensor.name)


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
    name: str, inputs: Iterable[LayerTensor], outputs: Iterable[LayerTensor], layers: Iterable[EngineLayer]
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


def _attributes(layer: EngineLayer) -> Iterator[onnx.AttributeProto]:
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
