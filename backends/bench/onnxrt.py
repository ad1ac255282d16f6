"""Times onnxruntime: `session.run` on the CPU; on an NVIDIA GPU an IOBinding with separately timed copies."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.bench.timed import Setup, Timing
from layerwise._tool.backends.cuda.bound import device_of
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.onnxrt.engine import onnxruntime
from layerwise._tool.backends.onnxrt.runner import OnnxrtRunner
from layerwise._tool.backends.onnxrt.session import CPU, CUDA, TENSORRT, in_words, open_session, provider_names
from layerwise._tool.backends.onnxrt.values import from_ort, is_plain, to_ort, type_name
from layerwise._tool.backends.runner import Loadable, flat_values, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import TensorInfo, dtype_row

_GRAPH_OPTIONS = {CUDA: "enable_cuda_graph", TENSORRT: "trt_cuda_graph_enable"}
_FEW = 8


class HostTimed:
    """`session.run` with arrays, as a program that calls onnxruntime does it."""

    phases: tuple[str, ...] = ("compute",)

    def __init__(self, session: Any, name: str, feed: Feed) -> None:
        self._session, self._name = session, name
        self._names = [node.name for node in session.get_outputs()]
        plain = all(is_plain(node.type) for node in (*session.get_inputs(), *session.get_outputs()))
        self._call = session.run if plain else session.run_with_ort_values
        self._feed = dict(feed) if plain else {key: to_ort(array) for key, array in feed.items()}
        self._values: list[Any] = []

    def run(self) -> Timing:
        call, names, feed = self._call, self._names, self._feed
        start = time.perf_counter()
        try:
            self._values = call(names, feed)
        except Exception:
            with in_words(self._name):
                raise
        end = time.perf_counter()
        return start, end, end - start

    def outputs(self) -> dict[str, Array]:
        return _arrays(self._names, self._values)


class DeviceTimed:
    """An IOBinding with inputs and outputs on the GPU; with transfers, each run copies them, as separate phases."""

    def __init__(self, session: Any, name: str, feed: Feed, device: int, transfers: bool) -> None:
        self._session, self._name, self._transfers = session, name, transfers
        self.phases: tuple[str, ...] = ("h2d", "compute", "d2h") if transfers else ("compute",)
        self._feed = {key: np.asarray(array, order="C") for key, array in feed.items()}
        self._binding = session.io_binding()
        self._inputs = {key: _on_device(array, device) for key, array in self._feed.items()}
        self._names = [node.name for node in session.get_outputs()]
        for key, value in self._inputs.items():
            self._binding.bind_ortvalue_input(key, value)
        self._bind_outputs(device)

    def _bind_outputs(self, device: int) -> None:
        for name in self._names:
            self._binding.bind_output(name, "cuda", device)

    def run(self) -> Timing:
        try:
            return self._with_copies() if self._transfers else self._without_copies()
        except Exception:
            with in_words(self._name):
                raise

    def _without_copies(self) -> Timing:
        start = time.perf_counter()
        self._session.run_with_iobinding(self._binding)
        self._binding.synchronize_outputs()
        end = time.perf_counter()
        return start, end, end - start

    def _with_copies(self) -> Timing:
        start = time.perf_counter()
        for name, value in self._inputs.items():
            value.update_inplace(self._feed[name])
        self._binding.synchronize_inputs()
        copied = time.perf_counter()
        self._session.run_with_iobinding(self._binding)
        self._binding.synchronize_outputs()
        computed = time.perf_counter()
        self._binding.copy_outputs_to_cpu()
        end = time.perf_counter()
        return start, end, copied - start, computed - copied, end - computed

    def outputs(self) -> dict[str, Array]:
        return _arrays(self._names, self._binding.copy_outputs_to_cpu())


class GraphTimed(DeviceTimed):
    """The same with a captured CUDA graph, whose outputs have fixed addresses. shapes: of the outputs, by name."""

    def __init__(
        self, session: Any, name: str, feed: Feed, device: int, transfers: bool, shapes: Mapping[str, Sequence[int]]
    ) -> None:
        self._shapes = shapes
        super().__init__(session, name, feed, device, transfers)

    def _bind_outputs(self, device: int) -> None:
        for node in self._session.get_outputs():
            dtype = dtype_row(type_name(node.type)).numpy
            value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(self._shapes[node.name], dtype, "cuda", device)
            self._binding.bind_ortvalue_output(node.name, value)


class OnnxrtSubject:
    """One session; streams are concurrent runs of it, each on its own CUDA stream."""

    def __init__(self, spec: RunnerSpec, model: Loadable, setup: Setup, name: str) -> None:
        self.name, self._spec, self._model, self._setup = name, spec, model, setup
        self._provider = provider_names(spec.providers)[0]
        self._device = device_of(spec) if self._provider in (CUDA, TENSORRT) else None
        if setup.cuda_graph and self._device is None:
            raise UsageError(f"{name} has no CUDA graphs: leave out --useCudaGraph, or choose --providers cuda")
        self._session = open_session(self._capturing() if setup.cuda_graph else spec, model)
        with in_words("onnxruntime cannot describe the model", model):
            self._runner = OnnxrtRunner(spec, model, self._session, name)
        self.inputs = self._runner.inputs
        self._notes = self._told()

    def _told(self) -> list[str]:
        notes, placed = self._runner.notes(), self._runner.fallbacks()
        if placed:
            notes.append(f"{len(placed)} node(s) run elsewhere than on {self._provider}: {', '.join(placed[:_FEW])}")
        if self._device is None and self._provider != CPU:
            notes.append("Copies from and to the device are part of the time.")
        return notes

    def streams(self, feed: Feed, count: int) -> list[HostTimed | DeviceTimed]:
        if self._setup.cuda_graph and count > 1:
            raise UsageError("onnxruntime replays a CUDA graph on one stream only: leave out --streams")
        can_bind = self._device is not None and self._can_bind()
        if self._setup.cuda_graph and not can_bind:
            raise UsageError("some inputs or outputs cannot lie on the GPU, which a CUDA graph needs: leave it out")
        if self._device is None or not can_bind:
            return [HostTimed(self._session, self.name, feed) for _ in range(count)]
        if self._setup.cuda_graph:
            return [self._graph(feed, self._device)]
        return [DeviceTimed(self._session, self.name, feed, self._device, self._setup.transfers) for _ in range(count)]

    def _can_bind(self) -> bool:
        types = [node.type for node in (*self._session.get_inputs(), *self._session.get_outputs())]
        fits = all(kind.startswith("tensor(") and "string" not in kind and is_plain(kind) for kind in types)
        if not fits:
            self._notes.append("Some inputs or outputs cannot lie on the GPU: copies are part of computing.")
        return fits

    def _graph(self, feed: Feed, device: int) -> GraphTimed:
        shapes = output_shapes(self._session, self._spec, self._model, feed)
        return GraphTimed(self._session, self.name, feed, device, self._setup.transfers, shapes)

    def _capturing(self) -> RunnerSpec:
        options, provider = self._spec.provider_options, self._provider
        asked = {**options.get(provider, {}), _GRAPH_OPTIONS[provider]: "1"}
        return msgspec.structs.replace(self._spec, provider_options={**options, provider: asked})

    def notes(self) -> list[str]:
        return list(self._notes)

    def close(self) -> None:
        self._session = None
        self._runner.close()


def output_shapes(session: Any, spec: RunnerSpec, model: Loadable, feed: Feed) -> dict[str, Sequence[int]]:
    """Return output shapes as the model declares them; where dimensions are open, as a run on the CPU yields them.

    Not from another session on the GPU: graphs captured after one replayed about 10 % slower.
    """
    declared = {node.name: node.shape for node in session.get_outputs()}
    if all(isinstance(size, int) for shape in declared.values() for size in shape):
        return declared
    with open_runner(msgspec.structs.replace(spec, providers=[], provider_options={}), model) as runner:
        return {name: array.shape for name, array in runner.infer(feed).outputs.items()}


def open_subject(spec: RunnerSpec, model: Loadable, setup: Setup, name: str) -> OnnxrtSubject:
    """Open an onnxruntime session for timing. Raises like `backends.onnxrt.session.open_session`."""
    return OnnxrtSubject(spec, model, setup, name)


def profiled(
    spec: RunnerSpec,
    model: Loadable,
    make_feed: Callable[[list[TensorInfo]], Feed],
    runs: Callable[[int], int],
    folder: Path,
) -> tuple[Path, Path | None]:
    """Run with onnxruntime's profiler; return its file and the executed graph (None if it cannot be written).

    make_feed: makes a feed for the model's inputs; runs: number of runs for a graph of so many nodes. Both files are
    written to `folder`.
    """
    spec = msgspec.structs.replace(spec, options={**spec.options, "profile": str(folder / "profile")})
    graph: Path | None = folder / "executed.onnx"
    try:
        session = open_session(spec, model, save_to=graph)
    except LayerwiseError:  # a provider compiled nodes, which onnxruntime cannot write
        session, graph = open_session(spec, model), None
    with in_words("onnxruntime cannot describe the model", model):
        inputs = OnnxrtRunner(spec, model, session, "onnxruntime").inputs
    timed = HostTimed(session, "onnxruntime", make_feed(inputs))
    nodes = len(onnx.load(graph, load_external_data=False).graph.node) if graph else 0
    for _ in range(runs(nodes)):
        timed.run()
    return Path(session.end_profiling()), graph


def _on_device(array: Array, device: int) -> Any:
    return onnxruntime.OrtValue.ortvalue_from_numpy(array, "cuda", device)


def _arrays(names: list[str], values: list[Any]) -> dict[str, Array]:
    found: dict[str, Array] = {}
    for name, value in zip(names, values, strict=True):
        found |= flat_values(name, from_ort(value) if isinstance(value, onnxruntime.OrtValue) else value)
    return found
