"""A choice of precision runs whole, on all inputs; its outputs are compared with the reference's."""

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.backends.runner import Loadable, Runner, open_runner
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances, rounding_bound
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import Side
from layerwise._tool.debugtools.compare.spec import ToleranceSpec
from layerwise._tool.debugtools.search.judges.original import Feed, Original, stronger
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement, OneAtATime
from layerwise._tool.debugtools.search.precision.spec import LowType, rounds_like
from layerwise._tool.debugtools.search.precision.ways import Way
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from layerwise._tool.backends.jobs.context import JobContext


class MixedJudge(OneAtATime):
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
        own = {name: bound * _rms(array) for name, array in self.golden().items()}
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
        result = self.candidate.infer(self.suspect.fit(feed, _unheard))
        self.suspect.declared = frozenset(map(self.suspect.common, self.candidate.outputs))
        outputs = {self.suspect.common(own): array for own, array in result.outputs.items()}
        return IterationResult(outputs, result.runtime, self.suspect.name)


def _error(judgement: Judgement) -> float:
    return judgement.measured.rel_l2 or 0.0


def _rms(array: Array) -> float:
    if array.dtype.kind not in "fc" or not array.size:
        return 0.0
    values = array[np.isfinite(array)].astype(np.float64)
    return float(np.sqrt(np.mean(values * values))) if values.size else 0.0


def _unheard(text: str) -> None:
    """The first run has said it already."""
