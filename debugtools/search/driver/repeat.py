"""Repeating: the same command, comparison or question until it is good, bad, counted, or its failure rate is known."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast, get_args

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.search.driver.files import Files
from layerwise._tool.debugtools.search.driver.history import VerdictRows, replay_of
from layerwise._tool.debugtools.search.driver.loop import CandidateHandler, SearchLoop, SearchPlan
from layerwise._tool.debugtools.search.judges.cluster import command_judge
from layerwise._tool.debugtools.search.judges.command import CommandJudge
from layerwise._tool.debugtools.search.judges.original import RerunJudge
from layerwise._tool.debugtools.search.judges.person import PersonJudge
from layerwise._tool.debugtools.search.judges.protocol import Judge
from layerwise._tool.debugtools.search.rows import RepeatedResult
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.repeat import Confidence, RepeatSearch, Until

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


Fixed = Literal["good", "bad"]


class Repeat:
    """One repetition as a job."""

    def __init__(self, context: "JobContext", spec: DebugSpec) -> None:
        self._context, self._spec = context, spec
        self._until = until_of(spec)

    def run(self) -> RepeatedResult:
        """Repeat; the job's result."""
        started = time.perf_counter()
        spec, replay = self._spec, replay_of(self._spec, self._context)
        with ExitStack() as stack:
            judge = self._judge(stack)
            handler = CandidateHandler(self._context, replay, Files(self._context, spec, Path.cwd()))
            if isinstance(judge, CommandJudge):
                judge.iteration = lambda: handler.iteration

            def begin() -> SearchPlan:
                return SearchPlan(RepeatSearch(self._until, judge.parallel), (), lambda candidate: ())

            loop = SearchLoop(self._context, begin, handler, judge, VerdictRows(self._context))
            told = loop.run().search.result()
        replay.save()
        return RepeatedResult(
            passed=told.good + told.bad > 0, search="repeat", verified=True, good=told.good, bad=told.bad,
            skipped=told.skipped, interval=list(told.interval), below=told.below, summary=told.statement,
            checks=loop.checks, cached=loop.cached, replay=str(replay.path) if replay.path else None,
            seconds=time.perf_counter() - started,
        )  # fmt: skip

    def _judge(self, stack: ExitStack) -> Judge:
        spec = self._spec
        if spec.check is not None:
            return command_judge(self._context, spec)
        if spec.interactive:
            return PersonJudge(self._context, self._context.artifacts / spec.artifact)
        if spec.compare is None or len(spec.compare.runners) < 2:
            raise UsageError("nothing judges: give two sides, a --check command, or answer yourself (--interactive)")
        setup = Setup(spec.sides(anew=True))
        stack.callback(setup.close)
        return RerunJudge(self._context, setup)


def until_of(spec: DebugSpec) -> Until:
    """When to stop. UsageError for what is none of "good", "bad", "auto" or a positive number."""
    if spec.until == "auto":
        return Confidence(spec.rate, 1 - spec.confidence)
    if spec.until in get_args(Fixed):
        return cast(Fixed, spec.until)
    if spec.until.isdecimal() and int(spec.until) > 0:
        return int(spec.until)
    raise UsageError(f"--until {shown(spec.until, 40)}: good, bad, auto, or how many times")
