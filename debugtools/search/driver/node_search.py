"""A reduction or bisection from beginning to end: the failure verified, searched, verified again, told in words."""

import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.search.driver.files import Best, Files, write_model
from layerwise._tool.debugtools.search.driver.handler import ModelHandler
from layerwise._tool.debugtools.search.driver.history import VerdictRows, replay_of
from layerwise._tool.debugtools.search.driver.loop import MakePlan, SearchLoop, bisect_plan, reduce_plan
from layerwise._tool.debugtools.search.driver.outcome import SearchOutcome
from layerwise._tool.debugtools.search.driver.start import Noise, Notes, begin
from layerwise._tool.debugtools.search.driver.verify import Verifier
from layerwise._tool.debugtools.search.judges.cluster import command_judge
from layerwise._tool.debugtools.search.judges.comparison import ComparisonJudge
from layerwise._tool.debugtools.search.judges.hints import Survey, expected_seconds, survey
from layerwise._tool.debugtools.search.judges.person import PersonJudge
from layerwise._tool.debugtools.search.judges.protocol import AfterCrash, Judge, Judgement
from layerwise._tool.debugtools.search.rows import CandidateRow, NodeSearchResult, NoteRow
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class NodeSearch:
    """what: "reduce" or "bisect"."""

    def __init__(self, context: "JobContext", spec: DebugSpec, setup: Setup, what: str) -> None:
        self._context, self._spec, self._what = context, spec, what
        self._started = time.perf_counter()
        self._by = "command" if spec.check else "person" if spec.interactive else "comparison"
        self._two = len(setup.sides) > 1
        if self._by == "comparison" and not self._two:
            raise UsageError(
                "nothing judges: give a second side, a --check command, or answer yourself (--interactive)"
            )
        self._history, self._notes = VerdictRows(context), Notes(context)
        self._replay = replay_of(spec, context)
        self._files = Files(context, spec, Path.cwd())
        self._noise = Noise(spec.flaky, 1 - spec.confidence) if spec.flaky else None
        self._start = begin(context, setup, self._history, self._notes, self._by == "comparison", self._noise)

    def run(self) -> NodeSearchResult:
        """Search; the job's result."""
        outcome = SearchOutcome(self._context, self._what, self._by, self._started)
        subject = self._start.subject
        if subject is None:
            assert self._start.original is not None
            return outcome.not_reproduced(self._start.original)
        self.subject = subject
        try:
            original = self._original()
            if original.verdict is Verdict.BAD:
                return self._searched(outcome)
            parts = self._by == "command" and self._what == "reduce" and self._spec.mode != "ddmin"
            if original.verdict is not Verdict.GOOD or not parts:
                return outcome.not_reproduced(original)
            self._context.warn("The original model passes: what is searched is a part of it that fails by itself.")
            return self._whole(self._searched(outcome))
        finally:
            subject.close()

    def _whole(self, result: NodeSearchResult) -> NodeSearchResult:
        """Nothing fails: what is left is the model itself."""
        if result.found:
            return result
        path = self._best.path
        write_model(self.subject.artifact(range(len(self.subject.cut.nodes))), path)
        text = f"Neither the original model nor a part of it fails: {shown(str(path))} is the whole."
        return replace(result, passed=True, original=Verdict.GOOD, summary=text)

    def _original(self) -> Judgement:
        """The verdict on the whole model; a person who searches has seen it fail."""
        known = self._history.find("original")
        if known is not None:
            return known
        if self._by == "command":
            return self._verifier(self._judge).judge(range(len(self.subject.cut.nodes)), "original")
        original = self._start.original or Judgement(Verdict.BAD, "person")
        about = CandidateRow("original", "original", len(self.subject.cut.nodes))
        self._history.add(about, original, "")
        return original

    def _searched(self, outcome: SearchOutcome) -> NodeSearchResult:
        best = self._best if self._what == "reduce" else None
        handler = ModelHandler(
            self._context, self.subject, self._replay, self._files, best,
            cached=self._spec.flaky is None, notes=self._notes if self._by == "comparison" else None,
        )  # fmt: skip
        loop = SearchLoop(self._context, self._plan(), handler, self._judge, self._history, self._auto)
        plan = loop.run()
        handler.finish(plan)
        judge = self._judge if self._by != "person" else None
        return outcome.result(plan, loop, self.subject, self._verifier(judge), self._best, self._replay.path)

    def _verifier(self, judge: Judge | None) -> Verifier:
        return Verifier(self._context, self.subject, judge, self._history, self._files, self._noise)

    def _plan(self) -> MakePlan:
        width = self._judge.parallel
        hinted = self._by == "comparison" and (self._what == "bisect" or self._spec.mode == "ddmin")
        hints = self._survey.hints if hinted else []
        if self._what == "bisect":
            return bisect_plan(self.subject, self._spec, hints, width, self._seconds())
        return reduce_plan(self.subject, self._spec, hints, width, self._seconds())

    def _seconds(self) -> list[float] | None:
        """Expected seconds of the items in this process, as the first attempt saw them; a command's are all alike."""
        if self._by != "comparison":
            return None
        if self._notes.known.seconds is None:
            costs = expected_seconds(self.subject, self.subject.items)
            self._notes.put(NoteRow(seconds=[round(cost, 6) for cost in costs]))
        return self._notes.known.seconds

    @cached_property
    def _survey(self) -> Survey:
        """What every node is off by itself, as the first attempt saw it."""
        if self._notes.known.hints is None:
            seen = survey(self.subject)
            self._notes.put(NoteRow(hints=seen.hints, level=seen.level))
            if seen.level:
                self._context.log(
                    f"most nodes are off by about {seen.level:.2g} by themselves: it computes in lower precision; "
                    "what stands out is searched"
                )
        return Survey(self._notes.known.hints or [], self._notes.known.level or 0.0)

    def _machine(self) -> Judge:
        judge = ComparisonJudge(self.subject, self._start.error, self._survey.level)
        crash, key = self._context.earlier.crash, self._notes.known.trying
        return AfterCrash(judge, key, crash) if crash and key else judge

    @cached_property
    def _best(self) -> Best:
        output = Path(self._spec.output) if self._spec.output else self._context.artifacts / "reduced.onnx"
        good = Path(self._spec.min_good) if self._spec.min_good else None
        return Best(self._context, self.subject, output, good)

    @cached_property
    def _judge(self) -> Judge:
        if self._by == "command":
            return command_judge(self._context, self._spec, self.subject.golden)
        machine = self._machine() if self._two else None
        if machine is not None and (self._by == "comparison" or self._notes.known.auto):
            return machine
        folder = Path(self._spec.folder) if self._spec.folder is not None else self._context.artifacts / "candidate"
        golden = self.subject.golden if self._two else None
        return PersonJudge(self._context, folder / self._spec.artifact, golden, machine, self._spec.keep_intermediate)

    def _auto(self) -> Judge | None:
        """What judges once a person lets the machine finish; None if there are no two sides."""
        if not self._two:
            return None
        self._notes.put(NoteRow(auto=True))
        return self._machine()
