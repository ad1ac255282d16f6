"""A reduction or bisection from beginning to end: the failure verified, searched, verified again, told in words."""

import time
from collections.abc import Sequence
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
from layerwise._tool.debugtools.search.driver.loop import MakePlan, SearchLoop, SearchPlan, bisect_plan, reduce_plan
from layerwise._tool.debugtools.search.driver.start import Noise, Notes, begin
from layerwise._tool.debugtools.search.driver.verify import Verifier, is_bad
from layerwise._tool.debugtools.search.judges.cluster import command_judge
from layerwise._tool.debugtools.search.judges.comparison import ComparisonJudge
from layerwise._tool.debugtools.search.judges.hints import Survey, expected_seconds, survey
from layerwise._tool.debugtools.search.judges.person import PersonJudge
from layerwise._tool.debugtools.search.judges.protocol import AfterCrash, Judge, Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import CandidateRow, Culprits, NodeSearchResult, NoteRow
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.bisect import BisectResult
from layerwise._tool.debugtools.search.strategies.flaky import FlakyResult
from layerwise._tool.debugtools.search.strategies.prefix import PrefixResult
from layerwise._tool.debugtools.search.strategies.protocol import Verdict
from layerwise._tool.debugtools.search.strategies.reduce import ReduceResult

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_TRY = {
    "comparison": "Give the inputs that show it (--load-inputs), tighter tolerances (--atol, --rtol, --tolerance auto)"
    ", or look at every tensor: layerwise run … --mark-all.",
    "command": "See what the command printed; --fail-code and --fail-regex decide what counts as a failure.",
    "person": "",
}


class SearchOutcome:
    """by: who judges."""

    def __init__(self, context: "JobContext", what: str, by: str, started: float) -> None:
        self._context, self._what, self._by, self._started = context, what, by, started

    def not_reproduced(self, original: Judgement) -> NodeSearchResult:
        """The whole model does not fail, or nobody can say."""
        if original.verdict is Verdict.GOOD:
            text = f"The original model passes: there is no failure to search for. {_TRY[self._by]}"
        else:
            text = f"Whether the original model fails cannot be told: {original.note or 'it was skipped'}."
        return self._result([], original.verdict, text.strip(), False)

    def result(
        self, plan: SearchPlan, loop: SearchLoop, subject: Subject, verifier: Verifier, best: Best, replay: Path | None
    ) -> NodeSearchResult:
        """Verify and write what the search has come to."""
        told = plan.search.result()
        if isinstance(told, ReduceResult | PrefixResult):
            found, text = self._reduced(told, plan, verifier, best)
        else:
            found, text = self._bisected(told, plan, subject, verifier, best)
        if self._by == "command" and not loop.passed:
            self._context.warn("every candidate failed, the smallest too: does the check fail for another reason?")
        verified = bool(found) and all(map(is_bad, found))
        min_good = best.save_good()
        result = self._result(found, Verdict.BAD, text, verified)
        replayed = str(replay) if replay else None
        return replace(result, checks=loop.checks, cached=loop.cached, replay=replayed, min_good=min_good)

    def _result(self, found: Sequence[Culprits], original: str, text: str, verified: bool) -> NodeSearchResult:
        return NodeSearchResult(
            passed=bool(found) and verified, search=self._what, by=self._by, found=list(found), original=original,
            verified=verified, summary=text, seconds=time.perf_counter() - self._started,
        )  # fmt: skip

    def _reduced(
        self, told: ReduceResult | PrefixResult, plan: SearchPlan, verifier: Verifier, best: Best
    ) -> tuple[list[Culprits], str]:
        if isinstance(told, ReduceResult):
            sets, minimal = list(told.sets), True
            if not sets and best.found is not None:
                sets, minimal = [told.best], False
        else:
            sets, minimal = ([told.best] if best.found is not None else []), len(told.best) == 1
        if not sets:
            return [], self._nothing(plan)
        sets.sort(key=len)
        found = []
        for number, nodes in enumerate(sets, 1):
            path = best.path if number == 1 else best.path.with_name(f"{best.path.stem}_{number}{best.path.suffix}")
            found.append(verifier.found(number, [plan.order[k] for k in nodes], path, minimal))
        more = " There are more: mend these, then search again." if plan.enough() and not plan.search.done else ""
        return found, _told(found) + ("" if minimal else self._further(found[0])) + more

    def _further(self, found: Culprits) -> str:
        return f" Perhaps it can be reduced further: reduce {shown(found.path)} again, with --mode ddmin."

    def _nothing(self, plan: SearchPlan) -> str:
        skipped = any(state == "skipped" for state, _ in plan.search.band())
        if self._by != "comparison":
            return "No part of the model fails on its own: nothing smaller than the whole was found."
        if skipped:
            return "The whole differs, but parts of it cannot be judged: no smaller failing part was found."
        return (
            "The outputs differ by more than the tolerance, but no node by more than rounding explains: the difference "
            "adds up on the way. Loosen the tolerance, or see where it grows: layerwise run … --mark-all."
        )

    def _bisected(
        self, told: BisectResult | FlakyResult, plan: SearchPlan, subject: Subject, verifier: Verifier, best: Best
    ) -> tuple[list[Culprits], str]:
        first = told.first_bad
        if first is None:
            return [], self._nothing(plan)
        i = plan.order[first]
        found = verifier.found(1, [i], best.path, True)
        text = _told([found])
        if not is_bad(found):
            found = self._with_all_before(first, i, plan, subject, verifier, best)
            text = f"{_name(found)} is the first node after which the model fails, but only with what comes before it."
        if isinstance(told, FlakyResult):
            rates = {"false_good": told.false_good, "false_bad": told.false_bad}
            found = replace(found, probability=told.probability, **rates)
            text += f" Probability {told.probability:.4f}."
        else:
            skipped = [subject.describe(plan.order[k]) for k in told.skipped]
            found = replace(found, skipped=skipped, monotone=told.monotone)
            if skipped:
                text += f" {len(skipped)} nodes before it could not be judged: any of them may be the first."
        return [found], text

    def _with_all_before(
        self, first: int, i: int, plan: SearchPlan, subject: Subject, verifier: Verifier, best: Best
    ) -> Culprits:
        """The node does not fail alone: what fails is everything up to it."""
        nodes = list(plan.order[: first + 1])
        found = verifier.found(2, nodes, best.path, False)
        return replace(found, nodes=[subject.describe(i)], with_all_before=len(nodes))


def _told(found: Sequence[Culprits]) -> str:
    parts = "; ".join(_name(each) for each in found[:5]) + (f"; and {len(found) - 5} more" if len(found) > 5 else "")
    if len(found) == 1 and len(found[0].nodes) > 1:
        text = f"{len(found[0].nodes)} nodes fail together: {parts}."
    else:
        text = f"{'One culprit' if len(found) == 1 else f'{len(found)} independent culprits'}: {parts}."
    wrong = [each for each in found if not is_bad(each)]
    if wrong:
        text += " Tried once more, " + ("it" if len(found) == 1 else "some of them") + " did not fail: "
        text += wrong[0].note or "the fault may come and go."
    return text


def _name(found: Culprits) -> str:
    nodes = found.nodes
    names = ", ".join(f"{shown(node.node, 80)} ({shown(node.op, 40)})" for node in nodes[:5])
    return names + (f" and {len(nodes) - 5} more" if len(nodes) > 5 else "")


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
