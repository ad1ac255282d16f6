"""A precision search from beginning to end: FP32 verified, nodes measured, searched, the result verified and told."""

import math
import time
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.run import run_comparison
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import MarkSpec
from layerwise._tool.debugtools.search.conclusion import concluded
from layerwise._tool.debugtools.search.driver.files import Files
from layerwise._tool.debugtools.search.driver.history import Replay, VerdictRows, replay_of
from layerwise._tool.debugtools.search.driver.loop import MakePlan, SearchLoop, SearchPlan
from layerwise._tool.debugtools.search.judges.cluster import command_judge
from layerwise._tool.debugtools.search.judges.person import PersonJudge
from layerwise._tool.debugtools.search.judges.protocol import Judge, Judgement
from layerwise._tool.debugtools.search.precision.handler import Best, PrecisionHandler
from layerwise._tool.debugtools.search.precision.scores import measured
from layerwise._tool.debugtools.search.precision.setup import PrecisionSetup
from layerwise._tool.debugtools.search.precision.ways import words
from layerwise._tool.debugtools.search.rows import (
    FileVerdict,
    KeptNodes,
    Node,
    Point,
    PrecisionSearchResult,
    VerdictRow,
)
from layerwise._tool.debugtools.search.spec import PrecisionSpec
from layerwise._tool.debugtools.search.strategies.precision import LayerSearch, PrecisionResult, PrecisionSearch, Scores
from layerwise._tool.debugtools.search.strategies.protocol import Search, Verdict
from layerwise._tool.surgery.model.structure import node_label

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


def frontier(rows: Iterable[VerdictRow], total: int) -> list[Point]:
    """The verdict rows that no other beats in both, the most low nodes first.

    total: nodes that can be low. Errors of a point are None where values were not finite.
    """
    points = [_point(row, total) for row in rows if row.measured.tensor]
    chosen: list[Point] = []
    for point in sorted(points, key=lambda point: (-point.low, _error(point))):
        if not chosen or (_error(point) < _error(chosen[-1]) and point.low < chosen[-1].low):
            chosen.append(point)
    return chosen


def _point(row: VerdictRow, total: int) -> Point:
    kept, found = row.nodes or 0, row.measured
    return Point(total - kept, kept, _finite(found.rel_l2), _finite(found.max_abs), row.verdict)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _error(point: Point) -> float:
    return math.inf if point.rel_l2 is None else point.rel_l2


class PrecisionOutcome:
    """by: who judges."""

    def __init__(self, setup: PrecisionSetup, by: str, started: float) -> None:
        self._setup, self._by, self._started = setup, by, started
        self._low = setup.spec.low

    def fails_in_fp32(self, full: Judgement) -> PrecisionSearchResult:
        """There is nothing to search for."""
        why = full.note or "an output differs by more than the tolerance"
        text = f"The model fails in FP32 already, so that no choice of precision can pass: {why}."
        if full.verdict is Verdict.SKIP:
            text = f"Whether the model passes in FP32 cannot be told: {why}."
        return self._result([], full, None, text)

    def result(
        self, told: PrecisionResult, full: Judgement | None, verified: Judgement | None, best: Best, loop: SearchLoop,
        history: VerdictRows, replay: Replay,
    ) -> PrecisionSearchResult:  # fmt: skip
        """What the search has come to; verified: the verdict on it outside the search."""
        if told.kept is None or verified is None:
            text = f"No set of nodes was found that lets the model pass with the others in {self._low}."
            found: list[KeptNodes] = []
        else:
            found = [self._found(told, verified, best)]
            text = self._text(told, verified)
        result = self._result(found, full, verified, text)
        total = sum(map(len, self._setup.choices.positions))
        all_low = next((row.verdict for row in history.rows if not row.phase and not row.nodes), None)
        return replace(
            result, frontier=frontier(history.rows, total), all_low=all_low, lowerable=total, checks=loop.checks,
            cached=loop.cached, replay=str(replay.path) if replay.path else None,
        )  # fmt: skip

    def _result(
        self, found: list[KeptNodes], full: Judgement | None, verified: Judgement | None, text: str
    ) -> PrecisionSearchResult:
        good = verified is not None and verified.verdict is Verdict.GOOD
        return PrecisionSearchResult(
            passed=bool(found) and good, search="precision", by=self._by, found=found, low=self._low,
            original=full.verdict if full else None, verified=good, summary=text, emulated=self._setup.emulate,
            seconds=time.perf_counter() - self._started,
        )  # fmt: skip

    def _found(self, told: PrecisionResult, verified: Judgement, best: Best) -> KeptNodes:
        assert told.kept is not None
        cut = self._setup.suspect.model.cut
        nodes = [
            Node(i, node_label(cut.nodes[i]), cut.nodes[i].op_type, list(cut.nodes[i].output))
            for i in self._setup.choices.nodes(told.kept)
        ]
        return KeptNodes(
            nodes=nodes, path=str(best.path), minimal=told.minimal, measured=verified.measured, note=verified.note,
            verdict=verified.verdict, file=self._file(best), build=self._build(told.kept),
        )  # fmt: skip

    def _build(self, kept: Sequence[int]) -> list[str] | None:
        """The options that build such an engine of the model as it is; None where no engine is built."""
        if self._setup.suspect.spec.kind != "trt":
            return None
        return words(self._low, [self._setup.choices.items[item] for item in kept])

    def _file(self, best: Best) -> FileVerdict | None:
        """How the file itself fares on the runner; None where a person or a command judges."""
        if self._by != "comparison":
            return None
        found = self._setup.machine.judge_file(best.path)
        return FileVerdict(found.verdict, found.measured, found.note)

    def _text(self, told: PrecisionResult, verified: Judgement) -> str:
        choices = self._setup.choices
        count, total = len(choices.nodes(told.kept or ())), sum(map(len, choices.positions))
        if not told.kept:
            text = f"The model passes with all {total} nodes in {self._low}: nothing needs to stay in FP32."
        else:
            names = ", ".join(shown(choices.items[item], 80) for item in told.kept[:5])
            more = f" and {len(told.kept) - 5} more" if len(told.kept) > 5 else ""
            kind = "not one of them can be left out" if told.minimal else "fewer may do"
            text = f"{count} of {total} nodes must stay in FP32 ({kind}): {names}{more}."
        if verified.verdict is not Verdict.GOOD:
            text += f" Tried once more, it did not pass: {verified.note or 'its outputs vary from run to run'}."
        return text


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
            return command_judge(context, search, machine.golden)
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


def debug_precision(context: "JobContext") -> "PrecisionSearchResult":
    """Find the nodes of the model that must stay in FP32, by the PrecisionSpec in `context.params`.

    Emits rows of the tables precision, verdicts, band, best and, where asked for, layers; returns the nodes, the
    model's path and the frontier of error against low nodes. LayerwiseError for what the user can mend.
    """
    spec = read_spec(context.params, PrecisionSpec, "the search")
    from layerwise._tool.backends.trt.store import forget_candidates

    try:
        return context.resumed(lambda: concluded(PrecisionRun(context, spec).run()))
    finally:
        forget_candidates()
