"""Engines and networks as text in Polygraphy's layout, with additions.

Beyond Polygraphy: weights and streamable bytes, device memory of each profile, values of shape tensors, build options,
the layers of every profile, the ONNX nodes of a layer, all inspector output for it.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from layerwise._tool.backends.tensors import format_array
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.inspect.engine import EngineView, Profile, Span
from layerwise._tool.backends.trt.inspect.layers import Layer, LayerTensor
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
    view: EngineView, layer: Layer, index: int, show: Collection[str], notes: Mapping[str, str]
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
        yield from _layer(layer, index, f"LayerType.{layer.kind}", {})
        if "attrs" in show and layer.attributes:
            yield f"{TAB}---- Attributes ----"
            for name, value in layer.attributes.items():
                if value is not None:
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


def _layer(layer: Layer, index: int, kind: str, notes: Mapping[str, str]) -> Iterator[str]:
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
