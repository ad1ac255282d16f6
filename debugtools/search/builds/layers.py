"""Marking layers of a TensorRT 10 network to run in a higher precision, an engine at a time, as Polygraphy does.

`debug precision --check`: of the first, or the last, k layers it finds the smallest k with which the command passes.
"""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.building.builder import Builder
from layerwise._tool.backends.trt.capabilities import able, lacks
from layerwise._tool.backends.trt.library import tensorrt
from layerwise._tool.backends.trt.logger import Messages
from layerwise._tool.backends.trt.options import ConfigOptions, TrtOptions, trt_options
from layerwise._tool.debugtools.convert.engine import EngineSpec, loadable
from layerwise._tool.debugtools.search.builds.judging import BuildJudge
from layerwise._tool.debugtools.search.builds.maker import Build
from layerwise._tool.debugtools.search.builds.run import lent
from layerwise._tool.debugtools.search.conclusion import concluded
from layerwise._tool.debugtools.search.driver.files import Files
from layerwise._tool.debugtools.search.driver.history import Replay, VerdictRows, replay_of
from layerwise._tool.debugtools.search.driver.loop import CandidateHandler, SearchLoop, SearchPlan
from layerwise._tool.debugtools.search.judges.cluster import command_judge
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.rows import BandRow, CandidateRow, LayersResult
from layerwise._tool.debugtools.search.spec import LayersSpec
from layerwise._tool.debugtools.search.strategies.precision import LayerSearch
from layerwise._tool.debugtools.search.strategies.protocol import Candidate
from layerwise._tool.surgery.cut.file import Opener

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_LOWER = ("tf32", "fp16", "bf16", "fp8", "int8")
_NONE = "Please enable at least one precision besides float32 (e.g. --int8, --fp16, --tf32)"
_HALF = (
    "Cannot mark layers to run in float16 if it is not enabled in the builder configuration.\n"
    "Please also specify `--fp16` as a command-line option"
)
_LOWEST = (
    "Using float16 as the higher precision, but float16 is also the lowest precision available. "
    "Did you mean to set --int8 as well?"
)
_TYPED = (
    "layer precision in debug precision --check is not available{where}: {why}. With -o MIXED.onnx the nodes of the "
    "ONNX model are searched instead, and the command judges models."
)


class MarkedEngines:
    """Builds the engine of `spec` with some of its layers marked. A trial is the range of their indices, `0:4`."""

    def __init__(self, context: "JobContext", spec: EngineSpec, precision: str) -> None:
        self._context, self._options = context, spec.options
        self._model, self._precision = loadable(spec), precision
        self._named = {"tactics.json": spec.options.save_tactics, "timing.cache": spec.options.save_timing_cache}
        self._place = context.artifacts / "builds"
        make_folder(self._place)
        self.count: int = self._builder().network().network.num_layers

    def drawn(self, trial: str) -> bool:
        """Whether a trial's tactics were drawn: never."""
        return False

    def make(self, trial: str, forced: Path | None = None) -> Build:
        """Build with these layers marked. LayerwiseError where TensorRT cannot."""
        started = time.perf_counter()
        builder = self._builder()
        network = builder.network()
        start, stop = map(int, trial.split(":"))
        marked = mark_layers(builder.trt, network.network, range(start, stop), self._precision)
        self._context.log(f"Marking layer(s): {marked} to run in {self._precision} precision", "verbose")
        data = builder.serialised(network)
        for note in builder.told:
            self._context.log(note)
        return Build(data, time.perf_counter() - started, Path(), None, self._written())

    def _builder(self) -> Builder:
        tactics, timings = (str(self._place / name) if self._named[name] else None for name in self._named)
        options = msgspec.structs.replace(
            self._options, fresh=True, save_engine=None, save_tactics=tactics, save_timing_cache=timings
        )
        return Builder(self._model, options, self._progress, Messages(), None)

    def _progress(self, done: float, total: float | None, text: str) -> None:
        self._context.progress(done, total, "steps", text)

    def _written(self) -> dict[str, bytes]:
        """The files that the build has written, by the names that the options have for them."""
        written = {name: self._place / own for own, name in self._named.items() if name}
        return {name: path.read_bytes() for name, path in written.items() if path.is_file()}


def mark_layers(trt: Any, network: Any, indices: range, precision: str) -> list[int]:
    """Set the precision of these layers but of constants and what gives no activations; which they are."""
    kind = {"float32": trt.DataType.FLOAT, "float16": trt.DataType.HALF}[precision]
    kinds = (trt.DataType.FLOAT, trt.DataType.HALF, trt.DataType.INT8)
    marked = []
    for index in indices:
        layer = network.get_layer(index)
        outputs = [layer.get_output(at) for at in range(layer.num_outputs)]
        computes = all(tensor.is_execution_tensor and tensor.dtype in kinds for tensor in outputs)
        if computes and layer.type != trt.LayerType.CONSTANT:
            layer.precision = kind
            marked.append(index)
    return marked


class LayersHandler(CandidateHandler):
    """Candidates are ranges of layers; their engines come about when the judge wants them."""

    def __init__(self, context: "JobContext", spec: LayersSpec, replay: Replay) -> None:
        super().__init__(context, replay, Files(context, spec.search, Path.cwd()))
        self._which = "first" if spec.direction == "forward" else "last"

    def artifact(self, plan: SearchPlan, candidate: Candidate, iteration: int) -> Artifact:
        self.iteration = iteration
        start = candidate.items[0] if candidate.items else 0
        about = CandidateRow(candidate.key, trial=f"{start}:{start + len(candidate.items)}")
        return Artifact((), (), "", {}, (), bytes, _nothing, about=about, iteration=iteration)

    def asked(self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None) -> None:
        assert artifact is not None
        self._replay.begin(candidate, self.iteration, None)
        self._context.row("band", BandRow([*plan.search.band()], None, artifact.about))
        count = len(candidate.items)
        self._context.log(f"Selecting {self._which} {count} layer(s) to run in higher precision")


def _nothing(path: Path, opener: Opener) -> None:
    """Write nothing: the engine is not built yet."""


class Layers:
    """One search as a job."""

    def __init__(self, context: "JobContext", spec: LayersSpec) -> None:
        compare = spec.search.compare
        if compare is None or compare.model is None or spec.search.check is None:
            raise UsageError("there is no model to build engines of, or no --check command")
        options = trt_options(compare.runners[0].options)
        _refuse(context, options, spec.precision)
        self._context, self._spec = context, spec
        engine = EngineSpec(
            model=compare.model, output="", options=options, model_options=compare.model_options, marks=compare.marks
        )
        self._engines = MarkedEngines(context, engine, spec.precision)

    def run(self) -> LayersResult:
        """Build until the number of layers is known; the job's result."""
        started = time.perf_counter()
        context, search = self._context, self._spec.search
        context.log(f"Using {self._spec.precision} as higher precision")
        replay = replay_of(search, context, f"layers {self._spec.direction} {self._spec.precision}")
        command = command_judge(context, lent(context, search))
        judge = BuildJudge(self._engines, command, "command", search)
        loop = SearchLoop(context, self._plan, LayersHandler(context, self._spec, replay), judge, VerdictRows(context))
        kept = loop.run().search.result().kept
        replay.save()
        return LayersResult(
            passed=True, search="layers", verified=kept is not None, kept=None if kept is None else len(kept),
            layers=self._engines.count, precision=self._spec.precision, direction=self._spec.direction,
            summary=self._told(kept), checks=loop.checks, cached=loop.cached,
            replay=str(replay.path) if replay.path else None, seconds=time.perf_counter() - started,
        )  # fmt: skip

    def _plan(self) -> SearchPlan:
        linear = self._spec.search.mode == "linear"
        search = LayerSearch(self._engines.count, "linear" if linear else "bisect", self._spec.direction)
        return SearchPlan(search, (), lambda candidate: candidate.items)

    def _told(self, kept: tuple[int, ...] | None) -> str:
        if kept is None:
            self._context.log("Could not find a configuration that satisfied accuracy requirements.", "error")
            return f"The check fails with all {self._engines.count} layers in {self._spec.precision}"
        which = "first" if self._spec.direction == "forward" else "last"
        return f"To achieve acceptable accuracy, try running the {which} {len(kept)} layer(s) in higher precision"


def _refuse(context: "JobContext", options: TrtOptions, precision: str) -> None:
    """UsageError for precisions that leave nothing to choose, LayerwiseError where layers have none."""
    trt, config = tensorrt(), options.config
    if not able(trt, "layer_precision"):
        where = f" on TensorRT version {shown(str(trt.__version__), 40)}"
        raise LayerwiseError(_TYPED.format(where=where, why=lacks(trt, "layer_precision")))
    if options.network.strongly_typed:
        raise UsageError(
            _TYPED.format(where="", why="a strongly typed network's layers have no precision of their own")
        )
    if precision == "float16" and not config.fp16:
        raise UsageError(_HALF)
    if not _lower(config):
        raise UsageError(_NONE)
    if precision == "float16" and not config.int8:
        context.warn(_LOWEST)


def _lower(config: ConfigOptions) -> list[str]:
    return [name for name in _LOWER if getattr(config, name)]


def debug_layers(context: "JobContext") -> "LayersResult":
    """Find how many layers must run in a higher precision, by the LayersSpec in `context.params`.

    Emits rows of the tables verdicts and band.
    """
    spec = read_spec(context.params, LayersSpec, "the search")
    return context.resumed(lambda: concluded(Layers(context, spec).run()))
