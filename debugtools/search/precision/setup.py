"""What all candidates of a precision search share: the sides, the choices, the machine that measures."""

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.onnxrt.quantization import quantised_types
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.search.judges.original import ends
from layerwise._tool.debugtools.search.judges.protocol import Artifact
from layerwise._tool.debugtools.search.precision.choices import Choices, QuantisedChoices
from layerwise._tool.debugtools.search.precision.engines import calibrated, full, uses_flags
from layerwise._tool.debugtools.search.precision.judge import MixedJudge
from layerwise._tool.debugtools.search.precision.spec import PrecisionSpec
from layerwise._tool.debugtools.search.precision.ways import Quantised, Way, way_for
from layerwise._tool.debugtools.search.rows import CandidateRow

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_CPU = frozenset({"cpu", "cpuexecutionprovider"})


def two_sides(spec: PrecisionSpec) -> CompareSpec:
    """The comparison with a runner for the candidates first and the reference second. UsageError without a model."""
    compare = spec.search.compare
    if compare is None:
        raise UsageError("there is no model to search in")
    given = next((runner for runner in compare.runners if runner.kind != "saved"), RunnerSpec(kind="onnxrt"))
    others = [runner for runner in compare.runners if runner is not given]
    suspect = full(given) if given.kind == "trt" else given
    reference = others or [msgspec.structs.replace(suspect, name="")]
    return msgspec.structs.replace(
        compare, runners=[suspect, *reference], marks=MarkSpec(), observe="auto", statistics=False,
        save_outputs=None, save_inputs=None, save_accuracy=None, save_heatmaps=None, save_error_plots=None,
    )  # fmt: skip


def computes_low(runner: RunnerSpec) -> bool:
    """Whether nodes of a low type are computed in it: not by onnxruntime on the CPU."""
    first = runner.providers[0].lower() if runner.providers else "cpu"
    return runner.kind != "onnxrt" or first not in _CPU


_SHOWN_AS_IT_IS = (
    "the candidates have real {low} nodes, which onnxruntime computes in FP32 on a CPU: with --emulate they are FP32 "
    "nodes between casts, which show the rounding anywhere"
)


class PrecisionSetup:
    """compare: the two sides. emulate: whether the runner gets FP32 nodes between Cast round trips. Close it."""

    def __init__(self, context: "JobContext", spec: PrecisionSpec) -> None:
        self.context, self.spec = context, spec
        self.compare = two_sides(spec)
        self._setup = Setup(self.compare)
        self.suspect, _ = ends(self._setup)
        real = computes_low(self.suspect.spec)
        self.emulate = not real if spec.emulate is None else spec.emulate
        elsewhere = spec.search.check is not None or spec.search.interactive
        if elsewhere and not spec.emulate and not real:
            context.warn(_SHOWN_AS_IT_IS.format(low=spec.low))

    @cached_property
    def choices(self) -> Choices:
        """UsageError if there is nothing to choose."""
        model, spec, folder = self.suspect.model, self.spec, self.context.artifacts / "weights"
        made: Choices
        if spec.low == "int8":
            types = None if uses_flags(self.suspect.spec) else quantised_types()
            made = QuantisedChoices(model.file, model.cut.nodes, folder, types, self._quantised.in_graph)
        else:
            made = Choices(
                model.file, model.cut.nodes, spec.low, folder, emulate=self.emulate, emulate_files=bool(spec.emulate)
            )
        if not made.items:
            made.close()
            raise UsageError(f"no node of this model can compute in {spec.low}")
        return made

    @cached_property
    def _quantised(self) -> Quantised:
        if self.suspect.spec.kind != "trt":
            raise UsageError("INT8 is chosen on TensorRT alone: give --trt (`layerwise convert --int8` is for all)")
        runner = calibrated(self.suspect.spec, self.compare.feeds, self.context.artifacts / "ranges.cache")
        return Quantised(runner, self.suspect.model)

    @cached_property
    def way(self) -> Way:
        """How the runner is given a choice."""
        side, low = self.suspect, self.spec.low
        found: Way = (
            self._quantised if low == "int8"
            else way_for(side.spec, side.model, self.choices.run, low, emulate=self.emulate)
        )  # fmt: skip
        if side.spec.kind == "trt":
            self.context.log(found.told)
        return found

    @cached_property
    def machine(self) -> MixedJudge:
        """The comparison of a choice with the reference."""
        judge = MixedJudge(self.context, self._setup, self.spec.low, self.way)
        if judge.tolerance != self.compare.tolerance:
            self.context.log(
                f"tolerance: {judge.tolerance.rtol['']:.3g} relative, and of an output's root mean square: what "
                f"{self.spec.low} explains at this depth (--atol, --rtol set others)"
            )
        return judge

    def artifact(self, items: tuple[int, ...], key: str, phase: str, iteration: int = 0) -> Artifact:
        """A choice as a candidate."""
        suspect = self.suspect
        feed = suspect.fit(self.machine.feeds[0], lambda text: None)
        about = CandidateRow(key, phase, len(self.choices.nodes(items)), node="", op="")
        return self.choices.artifact(items, feed, suspect.model.cut.outputs, about, iteration)

    def close(self) -> None:
        """Close sessions, remove the weights of candidates."""
        self._setup.close()
        if "choices" in self.__dict__:
            self.choices.close()
