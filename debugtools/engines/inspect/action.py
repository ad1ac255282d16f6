"""The job action `inspect_trt`: describes an engine, or the network that a model or a script makes."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import onnx

from layerwise._tool.backends.builds import no_progress
from layerwise._tool.backends.errors import BadFile, UsageError, placing
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.results.io import load_results
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.stats import array_stats
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.builder import Builder
from layerwise._tool.backends.trt.inference.engine import load_engine
from layerwise._tool.backends.trt.inference.runner import read_engine
from layerwise._tool.backends.trt.inspect.engine import EngineView, Profile, engine_view
from layerwise._tool.backends.trt.inspect.layers import EngineLayer, LayerTensor
from layerwise._tool.backends.trt.inspect.network import NetworkView, network_view
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import NetworkOptions, TrtOptions
from layerwise._tool.debugtools.convert.engine import EngineSpec, loadable, message_log
from layerwise._tool.debugtools.engines.inspect.spec import InspectSpec
from layerwise._tool.debugtools.engines.inspect.text import engine_lines, engine_picture, network_lines, network_picture
from layerwise._tool.surgery.inspect.document import joined_lines
from layerwise._tool.surgery.inspect.text import TAB

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.engines.inspect.nodes import NodeMap

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


def _layer(layer: EngineLayer, show: Collection[str], notes: Mapping[str, str]) -> dict[str, Any]:
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


def inspect_trt(context: "JobContext") -> dict[str, Any]:
    """Describe what `context.params` (an InspectSpec) names. Lines are log events of level "out", several in one.

    Result: description, or path and nodes (their number) of a picture, or nothing.

    Raises MissingDependency without TensorRT, BadFile for a file that is not an engine or model, LayerwiseError if the
    parser rejects the model.
    """
    spec = read_spec(context.params, InspectSpec, "what to inspect")
    messages = Messages(message_log(context, spec.verbose), verbose=spec.verbose)
    found = _engine(spec, messages, context) if spec.engine else _network(spec, messages, context)
    if spec.picture:
        return _painted(found.picture(), Path(spec.picture), context)
    if spec.json:
        return {"description": found.document()}
    lines = found.lines()
    context.log(next(lines), level="out")
    for text in joined_lines(lines):
        context.log(text, level="out")
    return {}


class Described(NamedTuple):
    """An engine or a network, in each output format."""

    lines: Callable[[], Iterator[str]]
    document: Callable[[], dict[str, Any]]
    picture: Callable[[], onnx.ModelProto]


def _painted(model: onnx.ModelProto, path: Path, context: "JobContext") -> dict[str, Any]:
    with placing(path):
        make_folder(path.parent)
        atomic_write(path, model.SerializeToString())
    context.log(f"Saving the layers in ONNX's format (to look at, not to run) to: {shown(str(path))}")
    return {"path": str(path), "nodes": len(model.graph.node)}


def _engine(spec: InspectSpec, messages: Messages, context: "JobContext") -> Described:
    view, notes = _viewed(spec, messages), _notes(spec.values)
    if not view.detailed and ("layers" in spec.show or spec.nodes_of):
        context.warn(f"The engine's profiling verbosity is {view.facts['Profiling Verbosity']}: it says little of its "
                     "layers. Build it with --profiling-verbosity DETAILED to see more.")  # fmt: skip
    nodes = _nodes(spec, view, context)
    if nodes:
        view = replace(view, layers=[nodes.told(layers) for layers in view.layers])

    def lines() -> Iterator[str]:
        yield from engine_lines(view, spec.show, notes)
        if nodes:
            yield ""
            yield from (TAB + line for line in nodes.lines())

    def document() -> dict[str, Any]:
        more = {"nodes": nodes.document()} if nodes else {}
        return {"path": spec.engine, **engine_document(view, spec.show, notes), **more}

    return Described(lines, document, lambda: engine_picture(view))


def _viewed(spec: InspectSpec, messages: Messages) -> EngineView:
    trt, path = tensorrt(), Path(spec.engine or "")
    plugins = spec.options.network.plugins
    return engine_view(trt, load_engine(trt, read_engine(path), path, messages, spec.options.run, plugins))


def _network(spec: InspectSpec, messages: Messages, context: "JobContext") -> Described:
    options = msgspec.structs.replace(spec.options, fresh=True)
    builder = Builder(_model(spec), options, no_progress, messages, None)
    made = builder.network()
    for note in builder.told:
        context.log(note)
    view = network_view(builder.trt, made.network)
    return Described(
        lambda: network_lines(view, spec.show),
        lambda: {"path": spec.model, **network_document(view, spec.show)},
        lambda: network_picture(view),
    )


def _model(spec: InspectSpec) -> Loadable:
    if spec.model is None:
        raise UsageError("there is nothing to inspect: neither an engine nor a model is named")
    return loadable(EngineSpec(model=spec.model, output="", options=spec.options, model_options=spec.model_options))


def _nodes(spec: InspectSpec, view: EngineView, context: "JobContext") -> "NodeMap | None":
    if spec.nodes_of is None:
        return None
    from layerwise._tool.debugtools.engines.inspect.nodes import node_map

    plugins = NetworkOptions(plugins=spec.options.network.plugins)
    options = TrtOptions(engine=spec.engine, run=spec.options.run, network=plugins)
    return node_map(spec.nodes_of, view, options, context)


def _notes(path: str | None) -> Mapping[str, str]:
    """Return minimum, maximum and mean of each tensor of saved outputs, for their first runner and iteration."""
    if path is None:
        return {}
    first = next((iterations[0] for _, iterations in load_results(path).items() if iterations), None)
    if first is None:
        raise BadFile(path, "holds no outputs")
    found = {name: array_stats(array, quantiles=False) for name, array in first.outputs.items()}
    return {name: f"min={s.min:.2f}, max={s.max:.2f}, avg={s.mean:.2f}" for name, s in found.items() if s}
