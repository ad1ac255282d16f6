"""How a runner is given a choice of precision: as a model with low nodes, or by TensorRT 10's flags and constraints.

TensorRT computes a choice in the graph: its low nodes are low in the ONNX model, and the network is strongly typed
(always on 11, on 10 where the user asks for it). Or by flags, on 10 alone: the FP32 model with the builder's flag for
the low type, and the layers of the nodes that are kept constrained to FP32.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, dtype_row
from layerwise._tool.backends.trt.building.config import by_flags
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.options import ConfigOptions, TrtOptions, to_dict, trt_options
from layerwise._tool.debugtools.bench.profile_child import with_names
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.sides.stream import short_lived
from layerwise._tool.debugtools.convert.engine_precision import reduced
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.spec import LowType
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.precision.lowering import Lowering
from layerwise._tool.surgery.types.node_types import tensor_types

_FLAGS: dict[str, str] = {"float16": "fp16", "bfloat16": "bf16", "int8": "int8"}


def full(runner: RunnerSpec) -> RunnerSpec:
    """The runner with nothing below FP32: what a choice is added to."""
    options = trt_options(runner.options)
    config = msgspec.structs.replace(options.config, fp16=False, bf16=False, fp8=False, int8=False)
    return _with(runner, options, config, {})


def uses_flags(runner: RunnerSpec) -> bool:
    """Whether TensorRT is asked by flags. MissingDependency where it is not installed."""
    return by_flags(tensorrt(), trt_options(runner.options))


def in_graph(runner: RunnerSpec) -> RunnerSpec:
    """The runner for models whose nodes have the types that they are to have."""
    options = trt_options(runner.options)
    network = msgspec.structs.replace(options.network, strongly_typed=True, layer_precisions={})
    return msgspec.structs.replace(runner, options=to_dict(msgspec.structs.replace(options, network=network)))


def flagged(runner: RunnerSpec, low: LowType, kept: Iterable[str] = ()) -> RunnerSpec:
    """The runner that makes everything `low` but the layers of the nodes in `kept`, by a constraint that must hold
    unless the user said that it may not.
    """
    options = trt_options(runner.options)
    constraint = options.config.precision_constraints or "obey"
    config = msgspec.structs.replace(options.config, precision_constraints=constraint)
    config = msgspec.structs.replace(config, **{_FLAGS[low]: True})
    return _with(runner, options, config, dict.fromkeys(kept, "float32"))


def calibrated(runner: RunnerSpec, feeds: FeedSpec, cache: Path) -> RunnerSpec:
    """The runner with INT8's ranges from these inputs, kept in `cache` unless the user names another file."""
    options = trt_options(runner.options)
    config = msgspec.structs.replace(
        options.config, calibration=feeds, calibration_cache=options.config.calibration_cache or str(cache)
    )  # fmt: skip
    return _with(runner, options, config, {})


def uncached(runner: RunnerSpec) -> RunnerSpec:
    """The runner for single nodes: their tensors are none that a cache of the whole model knows."""
    options = trt_options(runner.options)
    return _with(runner, options, msgspec.structs.replace(options.config, calibration_cache=None), {})


def words(low: LowType, kept: Iterable[str]) -> list[str]:
    """The options of `convert` and `run` that build an engine of this choice on any version."""
    named = [f"{name}:float32" for name in kept]
    constraint = ["--precision-constraints", "obey"] if named else []
    return [f"--{_FLAGS[low]}", *constraint, *(["--layer-precisions", *named] if named else [])]


def _with(runner: RunnerSpec, options: TrtOptions, config: ConfigOptions, precisions: dict[str, str]) -> RunnerSpec:
    network = msgspec.structs.replace(options.network, layer_precisions=precisions)
    return msgspec.structs.replace(
        runner, options=to_dict(msgspec.structs.replace(options, config=config, network=network))
    )


@dataclass(frozen=True)
class LowGraph:
    """The graph with all nodes low, whose parts `spec` runs. types: of its tensors, those alone that are not FP32's."""

    cut: GraphCut
    folder: Path
    spec: RunnerSpec
    types: Mapping[str, np.dtype[Any]] = field(default_factory=dict)


class InGraph:
    """Candidates are models whose nodes are low, or FP32 between Cast round trips (`emulate`).

    file_spec: the runner for the model that is found, as a file. told: the way in words.
    Where the user chose no level of optimisation, nothing of the latter is fused: onnxruntime takes casts for parts of
    a LayerNorm, and then refuses the node that it made.
    """

    told = "Precision is written into the graph: networks are strongly typed."

    def __init__(self, runner: RunnerSpec, lowering: Lowering, *, emulate: bool) -> None:
        own = in_graph(runner) if runner.kind == "trt" else runner
        self.file_spec, self._lowering = msgspec.structs.replace(own, model=None), lowering
        plain = emulate and runner.kind == "onnxrt" and runner.graph_optimization_level is None
        spec = short_lived(self.file_spec)
        self._spec = _unfused(spec) if plain else spec

    def candidate(self, artifact: Artifact) -> tuple[Loadable, RunnerSpec]:
        """A choice and the runner that runs it; the artifact's nodes are those that are kept."""
        return Loadable(data=artifact.build(), folder=self._lowering.folder), self._spec

    def all_low(self) -> LowGraph:
        """For measuring single nodes."""
        model = self._lowering.model(())
        types = {name: dtype_row(dtype_name(number)).numpy for name, number in tensor_types(model).items()}
        return LowGraph(GraphCut(model), self._lowering.folder, self.file_spec, types)


class ByFlags:
    """Candidates are the FP32 model and TensorRT's flag, with the layers of the nodes that are kept constrained."""

    told = "Precision is asked of the builder: its flag, and constraints on the layers of nodes that are kept."
    _named: Loadable

    def __init__(self, runner: RunnerSpec, model: Model, low: LowType) -> None:
        self.file_spec = msgspec.structs.replace(in_graph(runner), model=None)
        self._spec, self._low, self._model = short_lived(msgspec.structs.replace(runner, model=None)), low, model
        self._named = with_names(model.whole())

    def candidate(self, artifact: Artifact) -> tuple[Loadable, RunnerSpec]:
        kept = dict.fromkeys(node_label(self._model.cut.nodes[i]) for i in artifact.nodes)
        return self._named, flagged(self._spec, self._low, kept)

    def all_low(self) -> LowGraph:
        spec = uncached(self._spec) if self._low == "int8" else self._spec
        return LowGraph(self._model.cut, self._model.file.folder, flagged(spec, self._low))


class Quantised(ByFlags):
    """INT8: on 10 by its flag, a calibrator and constraints, elsewhere by quantisation nodes that the build puts in."""

    def __init__(self, runner: RunnerSpec, model: Model) -> None:
        super().__init__(runner, model, "int8")
        flags = uses_flags(runner)
        how = "by TensorRT's calibrator, with constraints" if flags else "by quantisation nodes in the graph, none"
        self.told = f"INT8 is reached {how} on the nodes that are kept."

    def in_graph(self, kept: Iterable[str]) -> AbstractContextManager[Loadable]:
        """The model with quantisation nodes in its graph, within a `with`."""
        options = trt_options(flagged(in_graph(self._spec), "int8", kept).options)
        return reduced(self._named, options, lambda text: None)


Way = InGraph | ByFlags
"""How a runner is given a choice."""


def way_for(runner: RunnerSpec, model: Model, lowering: Lowering, low: LowType, *, emulate: bool) -> Way:
    """The way of a runner to a floating type. MissingDependency where TensorRT is asked for and not installed."""
    if runner.kind == "trt" and uses_flags(runner):
        return ByFlags(runner, model, low)
    return InGraph(runner, lowering, emulate=emulate)


def _unfused(spec: RunnerSpec) -> RunnerSpec:
    """Constants folded (without that, onnxruntime takes minutes to open 20,000 nodes), LayerNorms left as they are."""
    options = {**spec.options, "disabled_optimizers": ["LayerNormFusion"]}
    return msgspec.structs.replace(spec, graph_optimization_level="basic", options=options)
