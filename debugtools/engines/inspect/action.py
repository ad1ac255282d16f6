"""The job action `inspect_trt`: what is in an engine, or in the network that a model or a script makes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import onnx

from layerwise._tool.backends.errors import BadFile, UsageError, placing
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.results.inference import RunResults
from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.stats import array_stats
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.builder import Builder
from layerwise._tool.backends.trt.building.monitor import no_progress
from layerwise._tool.backends.trt.inference.engine import load_engine
from layerwise._tool.backends.trt.inference.runner import read_engine
from layerwise._tool.backends.trt.inspect.engine import EngineView, engine_view
from layerwise._tool.backends.trt.inspect.network import network_view
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import NetworkOptions, TrtOptions
from layerwise._tool.debugtools.convert.engine import teller
from layerwise._tool.debugtools.engines.inspect.document import engine_document, network_document
from layerwise._tool.debugtools.engines.inspect.picture import engine_picture, network_picture
from layerwise._tool.debugtools.engines.inspect.spec import InspectSpec
from layerwise._tool.debugtools.engines.inspect.text import engine_lines, network_lines
from layerwise._tool.surgery.inspect.action import joined_lines
from layerwise._tool.surgery.inspect.text import TAB

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext
    from layerwise._tool.debugtools.engines.inspect.nodes import NodeMap


def inspect_trt(context: "JobContext") -> dict[str, Any]:
    """Describe what `context.params` (an InspectSpec) names. Lines are log events of level "out", several in one.

    Result: description, or path and nodes (their number) of a picture, or nothing.

    Raises MissingDependency without TensorRT, BadFile for what is no engine or model, LayerwiseError where the parser
    refuses the model.
    """
    spec = read_spec(context.params, InspectSpec, "what to inspect")
    messages = Messages(teller(context, spec.verbose), verbose=spec.verbose)
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
    """An engine or a network, in each form that may be asked for."""

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
    if spec.options.network.function:
        return Loadable(path=Path(spec.model))
    options = spec.model_options
    with ModelFile(spec.model, options.external_data_dir, options.ignore_external_data) as file:
        return Loadable(data=file.structure_bytes(), folder=file.folder)


def _nodes(spec: InspectSpec, view: EngineView, context: "JobContext") -> "NodeMap | None":
    if spec.nodes_of is None:
        return None
    from layerwise._tool.debugtools.engines.inspect.nodes import node_map

    plugins = NetworkOptions(plugins=spec.options.network.plugins)
    options = TrtOptions(engine=spec.engine, run=spec.options.run, network=plugins)
    return node_map(spec.nodes_of, view, options, context)


def _notes(path: str | None) -> Mapping[str, str]:
    """Smallest, largest and mean value of each tensor of saved outputs, of their first runner and iteration."""
    if path is None:
        return {}
    first = next((iterations[0] for _, iterations in RunResults.load(path).items() if iterations), None)
    if first is None:
        raise BadFile(path, "holds no outputs")
    found = {name: array_stats(array, quantiles=False) for name, array in first.outputs.items()}
    return {name: f"min={s.min:.2f}, max={s.max:.2f}, avg={s.mean:.2f}" for name, s in found.items() if s}
