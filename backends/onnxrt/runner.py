"""The onnxruntime runner, on any of its providers."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.installed import doubled
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.onnxrt.session import (
    CPU,
    check_providers,
    in_words,
    open_session,
    provider_names,
    short_name,
)
from layerwise._tool.backends.onnxrt.values import from_ort, is_plain, is_tensor, to_ort, type_name
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, Placed, RunnerBase, check_feed_types, check_names, flat_outputs
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo

__all__ = ["OnnxrtRunner", "check_providers", "open_onnxrt", "optimized_model"]

if TYPE_CHECKING:
    import onnx


class OnnxrtRunner(RunnerBase):
    """One onnxruntime session.

    Sequences are returned as `name[0]`, `name[1]`, …; an optional output without a value is omitted.
    """

    def __init__(self, spec: RunnerSpec, model: Loadable, session: Any, name: str) -> None:
        self.spec = spec
        self._model = model
        self.name = name
        self._session = session
        self._in_types = {node.name: node.type for node in session.get_inputs()}
        self._out_types = {node.name: node.type for node in session.get_outputs()}
        self._overridable = {node.name: node.type for node in session.get_overridable_initializers()}
        self.inputs = _with_unknown_ranks([_info(node) for node in session.get_inputs()], model)
        self._typed = [*self.inputs, *map(_info, session.get_overridable_initializers())]
        self.outputs = list(self._out_types)

    def infer(self, feed: Mapping[str, Array], outputs: Sequence[str] | None = None) -> IterationResult:
        """Run once, as in `Runner.infer`. bfloat16, FP8 and 4-bit tensors are ml_dtypes arrays."""
        if self._session is None:
            raise UsageError(f"{self.name} is closed")
        names = self.outputs if outputs is None else list(outputs)
        check_names(feed, self._in_types, names, self._out_types, optional=self._overridable)
        check_feed_types(feed, self._typed)
        fed = (self._in_types.get(name) or self._overridable[name] for name in feed)
        plain = all(map(is_plain, (*fed, *(self._out_types[name] for name in names))))
        start = time.perf_counter()
        with in_words(self.name):
            values = (self._run_plain if plain else self._run_values)(names, feed)
        runtime = time.perf_counter() - start
        found = flat_outputs(zip(names, values, strict=True))
        return IterationResult(outputs=found, runtime=runtime, runner_name=self.name)

    def elsewhere(self) -> list[Placed]:
        """Return the nodes of the optimised graph that are not on the first requested provider."""
        first = provider_names(self.spec.providers)[0]
        if first == CPU:
            return []
        return [
            Placed(node.name, node.op_type, short_name(part.ep_name))
            for part in self._session.get_provider_graph_assignment_info()
            if part.ep_name != first
            for node in part.get_nodes()
        ]

    def notes(self) -> list[str]:
        """Warn if FP16 nodes run in FP32 here, and of two onnxruntimes. Parses the model's structure, no weights."""
        notes = [doubled()]
        if provider_names(self.spec.providers)[0] == CPU:
            from layerwise._tool.backends.onnxrt.notes import half_on_cpu

            notes.append(half_on_cpu(_structure(self._model)) or "")
        return [note for note in notes if note]

    def close(self) -> None:
        self._session = None

    def _run_plain(self, names: list[str], feed: Mapping[str, Array]) -> list[Any]:
        """Outputs that are inputs too are copied: before 1.24 onnxruntime returns the caller's own array."""
        values: list[Any] = self._session.run(names, dict(feed))
        return [np.copy(value) if name in feed else value for name, value in zip(names, values, strict=True)]

    def _run_values(self, names: list[str], feed: Mapping[str, Array]) -> list[Any]:
        """Values that are not tensors come from a separate run, since their OrtValues cannot be read."""
        values = {name: to_ort(array) for name, array in feed.items()}
        tensors = [name for name in names if is_tensor(self._out_types[name])]
        made = self._session.run_with_ort_values(tensors, values) if tensors else []
        found = {name: from_ort(value) for name, value in zip(tensors, made, strict=True)}
        rest = [name for name in names if name not in found]
        if rest:
            found.update(zip(rest, self._run_plain(rest, feed), strict=True))
        return [found[name] for name in names]


def open_onnxrt(spec: RunnerSpec, model: Loadable, *, name: str) -> OnnxrtRunner:
    """Open an onnxruntime session as a runner. Raises like `backends.onnxrt.session.open_session`."""
    session = open_session(spec, model)
    with in_words("onnxruntime cannot describe the model", model):
        return OnnxrtRunner(spec, model, session, name)


def optimized_model(spec: RunnerSpec, model: Loadable, out_path: Path) -> Loadable:
    """Write the graph that onnxruntime really runs to `out_path`, its larger weights to `<out_path>.weights`.

    Run it with `graph_optimization_level="disable"`. LayerwiseError if a provider compiled nodes that it
    cannot write.
    """
    with in_words("onnxruntime cannot write its optimised graph"):
        open_session(spec, model, save_to=out_path)
    return Loadable(path=out_path, folder=out_path.parent)


def _structure(model: Loadable) -> "onnx.ModelProto":
    if model.data is None and model.path is not None:
        with ModelFile(model.path, str(model.folder) if model.folder else None) as file:
            return file.structure()
    return parse_model(model.read())


def _with_unknown_ranks(inputs: list[TensorInfo], model: Loadable) -> list[TensorInfo]:
    """The inputs, those of unknown rank among them marked: onnxruntime tells of them as of scalars."""
    if all(info.shape != () for info in inputs) or (model.path is None and model.data is None):
        return inputs
    try:
        values = {value.name: value.type.tensor_type for value in _structure(model).graph.input}
    except LayerwiseError:  # onnxruntime's own format
        return inputs
    bare = {info.name for info in inputs if info.name in values and not values[info.name].HasField("shape")}
    return [TensorInfo(info.name, info.dtype, (), unranked=True) if info.name in bare else info for info in inputs]


def _info(node: Any) -> TensorInfo:
    shape = tuple(node.shape) if isinstance(node.shape, list) else None
    return TensorInfo(name=node.name, dtype=type_name(node.type), shape=shape)
