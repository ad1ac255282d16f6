"""What all candidates of a precision search share: the sides, the choices, the machine that measures.

A choice runs whole, on all inputs; its outputs are compared with the reference's.
"""

import time
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.onnxrt.quantization import quantised_types
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances, rounding_bound
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import Side
from layerwise._tool.debugtools.compare.spec import NO_FILES, CompareSpec, MarkSpec, ToleranceSpec
from layerwise._tool.debugtools.search.judges.original import Original, ends, stronger
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judge, Judgement
from layerwise._tool.debugtools.search.judges.reference_tensors import unheard
from layerwise._tool.debugtools.search.precision.choices import Choices, QuantisedChoices
from layerwise._tool.debugtools.search.precision.ways import Quantised, Way, calibrated, full, uses_flags, way_for
from layerwise._tool.debugtools.search.rows import CandidateRow
from layerwise._tool.debugtools.search.spec import LowType, PrecisionSpec, rounds_like
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from layerwise._tool.backends.jobs.context import JobContext


class MixedJudge(Judge):
    """way: how the runner is given a choice. The reference's outputs are computed once and kept.

    Without tolerances of the user's, or with "auto", an output passes if rounding in the low type explains its error:
    rtol = 16 u sqrt(depth of the graph), atol = rtol * rms(reference), as debugtools.compare.arithmetic.tolerance has
    it.
    """

    def __init__(self, context: "JobContext", setup: Setup, low: LowType, way: Way) -> None:
        self._sides, self._way = _Sides(context, setup), way
        self.suspect, self.feeds = self._sides.suspect, self._sides.all_feeds
        self.memory_budget = setup.spec.memory_budget
        self.tolerance = self._tolerance(setup.spec.tolerance, low)
        self._sides.use(self.tolerance)

    def judge(self, artifact: Artifact | None) -> Judgement:
        assert artifact is not None
        return self._judged(*self._way.candidate(artifact))

    def judge_file(self, path: "Path") -> Judgement:
        """The verdict on a file, run as configured."""
        return self._judged(Loadable(path=path), self._way.file_spec)

    def _judged(self, model: Loadable, spec: RunnerSpec) -> Judgement:
        """Bad from the first input on that shows it; `measured`: the worst output met."""
        started = time.perf_counter()
        try:
            with open_runner(spec, model, name=self.suspect.name) as runner:
                found = self._worst(runner)
        except LayerwiseError as error:
            found = Judgement(Verdict.SKIP, "comparison", note=str(error))
        return replace(found, seconds=time.perf_counter() - started)

    def golden(self, artifact: Artifact | None = None) -> dict[str, Array]:
        """The reference's outputs for the first input."""
        return dict(self._sides.golden[0].outputs)

    def _worst(self, runner: Runner) -> Judgement:
        self._sides.candidate = runner
        worst: Judgement | None = None
        for number, feed in enumerate(self.feeds):
            found = stronger(worst, self._sides.judge(number, feed))
            if found.verdict is Verdict.BAD:
                return found
            if worst is None or worst.verdict is Verdict.SKIP or _error(found) > _error(worst):
                worst = found
        assert worst is not None
        return worst

    def _tolerance(self, given: ToleranceSpec, low: LowType) -> ToleranceSpec:
        if given != ToleranceSpec() and not given.auto:
            return given
        bound = rounding_bound([rounds_like(low)], max(self.suspect.model.cut.depth, default=1))
        own = {name: bound * root_mean_square(array) for name, array in self.golden().items()}
        return msgspec.structs.replace(given, auto=False, rtol={"": bound, **given.rtol}, atol={**own, **given.atol})


class _Sides(Original):
    """The comparison of a plain run, with a candidate in the suspect's place."""

    def __init__(self, context: "JobContext", setup: Setup) -> None:
        super().__init__(context, setup)
        self.candidate: Runner | None = None
        self.all_feeds: list[Feed] = [feed for _, feed in self.feeds()]
        self.golden = [super(_Sides, self)._run(self.reference, n, feed) for n, feed in enumerate(self.all_feeds)]
        self.reference.close()

    def use(self, tolerance: ToleranceSpec) -> None:
        self._comparer.tolerances = Tolerances(tolerance)

    def _run(self, side: Side, number: int, feed: Feed) -> IterationResult:
        if side is not self.suspect:
            return self.golden[number]
        assert self.candidate is not None
        result = self.candidate.infer(self.suspect.fit(feed, unheard))
        self.suspect.declared = frozenset(map(self.suspect.common, self.candidate.outputs))
        outputs = {self.suspect.common(own): array for own, array in result.outputs.items()}
        return IterationResult(outputs, result.runtime, self.suspect.name)


def _error(judgement: Judgement) -> float:
    return judgement.measured.rel_l2 or 0.0


def root_mean_square(array: Array) -> float:
    """Of the finite values of floats; 0 where there are none."""
    if array.dtype.kind not in "fc" or not array.size:
        return 0.0
    values = array[np.isfinite(array)].astype(np.float64)
    return float(np.sqrt(np.mean(values * values))) if values.size else 0.0


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
        **NO_FILES,
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
        runner = calibrated(self.suspect.spec, self._setup.feeds, self.context.artifacts / "ranges.cache")
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
        feed = suspect.fit(self.machine.feeds[0], unheard)
        about = CandidateRow(key, phase, len(self.choices.nodes(items)), node="", op="")
        return self.choices.artifact(items, feed, suspect.model.cut.outputs, about, iteration)

    def close(self) -> None:
        """Close sessions, remove the weights of candidates."""
        self._setup.close()
        if "choices" in self.__dict__:
            self.choices.close()
