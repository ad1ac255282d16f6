"""How a runner is given a choice of precision: as a model with low nodes, or by TensorRT 10's flags and constraints."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np

from layerwise._tool.backends.runner import Loadable
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, dtype_row
from layerwise._tool.backends.trt.options import trt_options
from layerwise._tool.debugtools.bench.layers import with_names
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.sides.stream import short_lived
from layerwise._tool.debugtools.convert.engine_precision import reduced
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.precision import engines
from layerwise._tool.debugtools.search.precision.spec import LowType
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.precision.lowering import Lowering
from layerwise._tool.surgery.types.node_types import tensor_types


@dataclass(frozen=True)
class LowGraph:
    """The graph with all nodes low, whose parts `spec` runs. types: of its tensors, those alone that are not FP32's."""

    cut: GraphCut
    folder: Path
    spec: RunnerSpec
    types: Mapping[str, np.dtype[Any]] = field(default_factory=dict)


class Way(Protocol):
    """file_spec: the runner for the model that is found, as a file. told: the way in words."""

    file_spec: RunnerSpec
    told: str

    def candidate(self, artifact: Artifact) -> tuple[Loadable, RunnerSpec]:
        """A choice and the runner that runs it; the artifact's nodes are those that are kept."""
        ...

    def all_low(self) -> LowGraph:
        """For measuring single nodes."""
        ...


class InGraph:
    """Candidates are models whose nodes are low, or FP32 between Cast round trips (`emulate`).

    Where the user chose no level of optimisation, nothing of the latter is fused: onnxruntime takes casts for parts of
    a LayerNorm, and then refuses the node that it made.
    """

    told = "Precision is written into the graph: networks are strongly typed."

    def __init__(self, runner: RunnerSpec, lowering: Lowering, *, emulate: bool) -> None:
        own = engines.in_graph(runner) if runner.kind == "trt" else runner
        self.file_spec, self._lowering = msgspec.structs.replace(own, model=None), lowering
        plain = emulate and runner.kind == "onnxrt" and runner.graph_optimization_level is None
        spec = short_lived(self.file_spec)
        self._spec = _unfused(spec) if plain else spec

    def candidate(self, artifact: Artifact) -> tuple[Loadable, RunnerSpec]:
        return Loadable(data=artifact.build(), folder=self._lowering.folder), self._spec

    def all_low(self) -> LowGraph:
        model = self._lowering.model(())
        types = {name: dtype_row(dtype_name(number)).numpy for name, number in tensor_types(model).items()}
        return LowGraph(GraphCut(model), self._lowering.folder, self.file_spec, types)


class ByFlags:
    """Candidates are the FP32 model and TensorRT's flag, with the layers of the nodes that are kept constrained."""

    told = "Precision is asked of the builder: its flag, and constraints on the layers of nodes that are kept."
    _named: Loadable

    def __init__(self, runner: RunnerSpec, model: Model, low: LowType) -> None:
        self.file_spec = msgspec.structs.replace(engines.in_graph(runner), model=None)
        self._spec, self._low, self._model = short_lived(msgspec.structs.replace(runner, model=None)), low, model
        self._named = with_names(model.whole())

    def candidate(self, artifact: Artifact) -> tuple[Loadable, RunnerSpec]:
        kept = dict.fromkeys(node_label(self._model.cut.nodes[i]) for i in artifact.nodes)
        return self._named, engines.flagged(self._spec, self._low, kept)

    def all_low(self) -> LowGraph:
        spec = engines.uncached(self._spec) if self._low == "int8" else self._spec
        return LowGraph(self._model.cut, self._model.file.folder, engines.flagged(spec, self._low))


class Quantised(ByFlags):
    """INT8: on 10 by its flag, a calibrator and constraints, elsewhere by quantisation nodes that the build puts in."""

    def __init__(self, runner: RunnerSpec, model: Model) -> None:
        super().__init__(runner, model, "int8")
        flags = engines.uses_flags(runner)
        how = "by TensorRT's calibrator, with constraints" if flags else "by quantisation nodes in the graph, none"
        self.told = f"INT8 is reached {how} on the nodes that are kept."

    def in_graph(self, kept: Iterable[str]) -> AbstractContextManager[Loadable]:
        """The model with quantisation nodes in its graph, within a `with`."""
        options = trt_options(engines.flagged(engines.in_graph(self._spec), "int8", kept).options)
        return reduced(self._named, options, lambda text: None)


def way_for(runner: RunnerSpec, model: Model, lowering: Lowering, low: LowType, *, emulate: bool) -> Way:
    """The way of a runner to a floating type. MissingDependency where TensorRT is asked for and not installed."""
    if runner.kind == "trt" and engines.uses_flags(runner):
        return ByFlags(runner, model, low)
    return InGraph(runner, lowering, emulate=emulate)


def _unfused(spec: RunnerSpec) -> RunnerSpec:
    """Constants folded (without that, onnxruntime takes minutes to open 20,000 nodes), LayerNorms left as they are."""
    options = {**spec.options, "disabled_optimizers": ["LayerNormFusion"]}
    return msgspec.structs.replace(spec, graph_optimization_level="basic", options=options)
