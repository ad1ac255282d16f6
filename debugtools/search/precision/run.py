"""A precision search from beginning to end: FP32 verified, nodes measured, searched, and the result verified."""

import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from layerwise._tool.debugtools.compare.run import run_comparison
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import MarkSpec
from layerwise._tool.debugtools.search.driver.handler import Files
from layerwise._tool.debugtools.search.driver.history import VerdictRows
from layerwise._tool.debugtools.search.driver.loop import SearchLoop
from layerwise._tool.debugtools.search.driver.plans import MakePlan, SearchPlan
from layerwise._tool.debugtools.search.driver.replay import replay_of
from layerwise._tool.debugtools.search.judges.command import CommandJudge
from layerwise._tool.debugtools.search.judges.person import PersonJudge
from layerwise._tool.debugtools.search.judges.protocol import Judge, Judgement
from layerwise._tool.debugtools.search.precision.handler import Best, PrecisionHandler
from layerwise._tool.debugtools.search.precision.outcome import PrecisionOutcome
from layerwise._tool.debugtools.search.precision.scores import measured
from layerwise._tool.debugtools.search.precision.setup import PrecisionSetup
from layerwise._tool.debugtools.search.precision.spec import PrecisionSpec
from layerwise._tool.debugtools.search.rows import PrecisionSearchResult
from layerwise._tool.debugtools.search.strategies.layers import LayerSearch
from layerwise._tool.debugtools.search.strategies.precision import PrecisionSearch, Scores
from layerwise._tool.debugtools.search.strategies.protocol import Search, Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class PrecisionRun:
    """One search as a job."""

    def __init__(self, context: "JobContext", spec: PrecisionSpec) -> None:
        self._context, self._spec = context, spec
        self._started = time.perf_counter()
        self._by = "command" if spec.search.check else "person" if spec.search.interactive else "comparison"
        self._setup = PrecisionSetup(context, spec)
        self._history = VerdictRows(context)

    def run(self) -> PrecisionSearchResult:
        """Search; the job's result."""
        try:
            return self._run()
        finally:
            self._setup.close()

    def _run(self) -> PrecisionSearchResult:
        setup, spec = self._setup, self._spec
        outcome = PrecisionOutcome(setup, self._by, self._started)
        items = range(len(setup.choices.items))
        full = self._once("original", tuple(items)) if self._by != "person" else None
        if full is not None and full.verdict is not Verdict.GOOD:
            return outcome.fails_in_fp32(full)
        output = spec.search.output or str(self._context.artifacts / "mixed.onnx")
        best = Best(self._context, setup.choices, Path(output))
        replay = replay_of(spec.search, self._context, spec.low)
        files = Files(self._context, spec.search, Path.cwd())
        handler = PrecisionHandler(self._context, setup, replay, files, best)
        loop = SearchLoop(self._context, self._plan(), handler, self._judge, self._history, lambda: setup.machine)
        plan = loop.run()
        handler.finish(plan)
        kept = plan.search.result().kept
        verified = None if kept is None else self._once("verify", kept)
        if kept is not None and (spec.layers or spec.save_layer_outputs):
            layer_table(setup, kept)
        return outcome.result(plan.search.result(), full, verified, best, loop, self._history, replay)

    def _once(self, phase: str, items: tuple[int, ...]) -> Judgement:
        """The verdict on one choice outside the search, from an earlier attempt if it had come so far."""
        known = self._history.find(phase)
        if known is not None:
            return known
        if phase == "verify" and self._by == "person":
            return Judgement(Verdict.GOOD, "person")
        artifact = self._setup.artifact(items, phase, phase)
        judgement = self._new_judge().judge(artifact)  # the search's own has stopped by then
        self._history.add(artifact.about, judgement, "")
        return judgement

    @cached_property
    def _judge(self) -> Judge:
        return self._new_judge()

    def _new_judge(self) -> Judge:
        search, context, machine = self._spec.search, self._context, self._setup.machine
        if self._by == "command":
            return CommandJudge(search, Path.cwd(), context.artifacts / "checks", machine.golden, context.log)
        if self._by == "comparison":
            return machine
        folder = context.artifacts / "candidate" if search.folder is None else Path(search.folder)
        return PersonJudge(context, folder / search.artifact, machine.golden, machine, search.keep_intermediate)

    def _plan(self) -> MakePlan:
        """How to begin the search, again after an undo."""
        choices, spec, mode = self._setup.choices, self._spec, self._spec.search.mode
        if mode != "ddmin":
            return lambda: self._planned(LayerSearch(len(choices.items), mode, spec.direction))
        width = self._judge.parallel
        return lambda: self._planned(PrecisionSearch(len(choices.items), self._scores, spec.limit, width))

    def _scores(self) -> Scores:
        return self._measured

    @cached_property
    def _measured(self) -> Scores:
        return measured(self._setup)

    def _planned(self, search: Search[Any]) -> SearchPlan:
        choices = self._setup.choices
        order = [positions[0] for positions in choices.positions]
        return SearchPlan(search, order, lambda candidate: choices.nodes(candidate.items))


def layer_table(setup: PrecisionSetup, kept: tuple[int, ...]) -> None:
    """Compare every tensor of the choice that keeps `kept` with the reference's: rows of table `layers`, and the file
    for all of them if one was asked for. LayerwiseError as a comparison raises it.
    """
    path = setup.context.artifacts / "observed.onnx"
    setup.choices.write_run(kept, path)
    _, *others = setup.compare.runners
    model = setup.suspect.model.path
    others = [
        other if other.kind == "saved" else msgspec.structs.replace(other, model=other.model or model)
        for other in others
    ]
    spec = msgspec.structs.replace(
        setup.compare,
        runners=[msgspec.structs.replace(setup.way.file_spec, model=str(path)), *others],
        marks=MarkSpec(everything=True),
        tolerance=setup.machine.tolerance,
        save_outputs=setup.spec.save_layer_outputs,
    )
    run_comparison(setup.context, Setup(spec))
