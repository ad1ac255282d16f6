"""Finds and replaces subgraphs that a plugin implements, with pattern files like Polygraphy's.

A plugin is a folder with a `pattern.py`:
    get_plugin_metadata() -> {"name": …, "op": …}
    get_matching_subgraphs(graph) -> [{"inputs": [names], "outputs": [names], "attributes": {…}}], or
    get_plugin_pattern() -> an onnx_graphsurgeon.GraphPattern, whose matches are used unchanged
    replace_with_plugin(graph, input_tensors, output_tensors, attrs, op), if a single node is not enough
Scripts are the user's code: only a job runs them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray
from onnx import TensorProto
from onnx_graphsurgeon.ir.tensor import LazyValues

from layerwise._tool.backends.errors import LayerwiseError, UsageError, raise_scarce
from layerwise._tool.backends.reference.evaluate import tensor_array
from layerwise._tool.backends.scripts import load_script, script_errors
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.surgery.model.structure import Structure

PATTERN = "pattern.py"
Attributes = dict[str, object]


class _FileValues(LazyValues):  # type: ignore[misc]
    """Values that are read from their file on access."""

    def __init__(self, tensor: TensorProto, folder: Path | None) -> None:
        super().__init__(tensor)
        self._folder = folder

    def load(self) -> NDArray[Any]:
        return np.array(tensor_array(self.tensor, self._folder))


def to_graph(structure: Structure) -> gs.Graph:
    """Return the model as a graph to read and change. LayerwiseError if graphsurgeon does not support it."""
    try:
        graph = gs.import_onnx(structure.proto())
    except Exception as error:  # it raises arbitrary exceptions
        raise_scarce(error)
        raise LayerwiseError(f"onnx-graphsurgeon cannot take the model: {in_words(error)}") from None
    for tensor in _constants(graph):
        values = tensor._values
        if isinstance(values, LazyValues) and getattr(values.tensor, "data_location", 0) == TensorProto.EXTERNAL:
            tensor._values = _FileValues(values.tensor, structure.folder)
    return graph


def from_graph(graph: gs.Graph, structure: Structure) -> Structure:
    """Return a changed graph of `to_graph(structure)` as a structure. LayerwiseError if it is no longer a model."""
    try:
        model = gs.export_onnx(graph)
    except Exception as error:  # it raises arbitrary exceptions
        raise_scarce(error)
        raise LayerwiseError(f"onnx-graphsurgeon cannot write the graph: {in_words(error)}") from None
    result = Structure.from_proto(model, structure.folder, structure.base)
    return result.with_(rest=structure.rest, metadata=structure.metadata, ir_version=structure.ir_version)


def _constants(graph: gs.Graph) -> Iterator[gs.Constant]:
    for part in (graph, *graph.subgraphs(recursive=True)):
        yield from (tensor for tensor in part.tensors().values() if isinstance(tensor, gs.Constant))


@dataclass(frozen=True)
class Instance:
    """A subgraph, by the names of its input and output tensors."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Attributes


@dataclass(frozen=True)
class Match:
    """The matches of a plugin. name, op: from its metadata; folder: its name in the plugin folder."""

    folder: str
    name: str
    op: str
    instances: tuple[Instance, ...]


def plugin_names(plugins: Path, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> list[str]:
    """Return the plugins of a folder by name. UsageError if there are none, or a named one is missing."""
    there = sorted(path.parent.name for path in plugins.glob(f"*/{PATTERN}") if path.is_file())
    if not there:
        raise UsageError(f"{shown(str(plugins))} holds no plugins: there is no */{PATTERN} in it")
    for name in (*include, *exclude):
        if name not in there:
            known = shown(", ".join(there), 300)
            raise UsageError(f"there is no plugin {shown(name, 80)!r} in {shown(str(plugins))}: it has {known}")
    return [name for name in there if (not include or name in include) and name not in exclude]


def find_matches(structure: Structure, plugins: Path, name: str) -> Match:
    """Run one plugin's pattern on the model. UsageError or LayerwiseError for an invalid or failing script."""
    script = plugins / name / PATTERN
    module = load_script(script.absolute())
    graph = to_graph(structure)  # a separate graph: the script may change it
    with script_errors(script.absolute(), f"plugin {name}"):
        found = _matching(module, graph)
    instances = tuple(instance_of(item, name) for item in found or ())
    metadata = _call(module, "get_plugin_metadata", script) if instances else {}
    op = metadata.get("op") if isinstance(metadata, Mapping) else None
    if instances and not isinstance(op, str):
        raise LayerwiseError(f"{shown(str(script))}: get_plugin_metadata() must give a dict with a name and an op")
    return Match(name, str(metadata.get("name", name)), str(op), instances)


def _matching(module: ModuleType, graph: gs.Graph) -> Any:
    if hasattr(module, "get_matching_subgraphs"):
        return module.get_matching_subgraphs(graph)
    if hasattr(module, "get_plugin_pattern"):
        matches = module.get_plugin_pattern().match_all(graph)
        return [{"inputs": [t.name for t in m.inputs], "outputs": [t.name for t in m.outputs]} for m in matches]
    raise UsageError("there is neither get_matching_subgraphs nor get_plugin_pattern in it")


def _call(module: ModuleType, name: str, script: Path) -> Any:
    if not hasattr(module, name):
        raise UsageError(f"script {shown(str(script))} has no {name}()")
    with script_errors(script.absolute(), f"{name}()"):
        return getattr(module, name)()


def instance_of(item: Any, plugin: str) -> Instance:
    """Return what a script or a configuration describes. UsageError if it is not an instance of a subgraph."""
    item = item if isinstance(item, Mapping) else {}
    inputs, outputs, attributes = item.get("inputs"), item.get("outputs"), item.get("attributes") or {}
    if not (_are_names(inputs) and _are_names(outputs) and outputs and isinstance(attributes, Mapping)):
        told = shown(repr(item), 120)
        raise UsageError(f"plugin {shown(plugin, 80)}: an instance has inputs, outputs and attributes: {told} has not")
    return Instance(tuple(inputs), tuple(outputs), {str(key): value for key, value in attributes.items()})


def _are_names(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def replace_matches(
    structure: Structure, plugins: Path, matches: Iterable[Match], done: Callable[[Match, int], None]
) -> Structure:
    """Return the model with the subgraphs replaced by the plugins' nodes; `done` gets the count of each.

    LayerwiseError for names of a match that the model does not have (any more), and for a script that fails.
    """
    graph = to_graph(structure)
    for match in matches:
        script = (plugins / match.folder / PATTERN).absolute()
        module = load_script(script) if script.is_file() else None
        replace = getattr(module, "replace_with_plugin", _replace)
        tensors, count = graph.tensors(), 0
        for instance in match.instances:
            inputs, outputs = (_tensors(tensors, names, match) for names in (instance.inputs, instance.outputs))
            with script_errors(script, f"plugin {match.folder}"):
                count += bool(
                    replace(
                        graph=graph, input_tensors=inputs, output_tensors=outputs,
                        attrs=dict(instance.attributes), op=match.op,
                    )
                )  # fmt: skip
        done(match, count)
    graph.cleanup().toposort()
    return from_graph(graph, structure)


def _replace(graph: gs.Graph, input_tensors: list[Any], output_tensors: list[Any], attrs: Attributes, op: str) -> bool:
    """Replace the makers of the outputs by one node; other readers of the inputs are unchanged."""
    for tensor in output_tensors:
        tensor.inputs.clear()
    names = {node.name for node in graph.nodes}
    label = next(name for name in (f"{op}_{i}" for i in range(len(names) + 1)) if name not in names)
    graph.nodes.append(gs.Node(op=op, name=label, attrs=attrs, inputs=input_tensors, outputs=output_tensors))
    return True


def _tensors(tensors: Mapping[str, Any], names: Sequence[str], match: Match) -> list[Any]:
    for name in names:
        if name not in tensors:
            raise LayerwiseError(f"plugin {shown(match.folder, 80)}: the model has no tensor {shown(name, 120)!r}")
    return [tensors[name] for name in names]
