"""Building again and again as a job: trials, suspects, and, if asked, the tactics that make it fail, verified."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from layerwise._tool.backends.errors import UsageError, placing
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.specs import read_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.trt.options import check_anew
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.convert.engine import EngineSpec
from layerwise._tool.debugtools.search.builds.judging import BuildHandler, BuildJudge, EngineJudge, NoJudge, against
from layerwise._tool.debugtools.search.builds.maker import EngineMaker, apart, here, joined
from layerwise._tool.debugtools.search.builds.narrow import (
    Narrowed,
    Narrowing,
    SuspectTactic,
    Trial,
    suspects,
    told,
    varied,
)
from layerwise._tool.debugtools.search.conclusion import concluded
from layerwise._tool.debugtools.search.driver.history import VerdictRows
from layerwise._tool.debugtools.search.driver.loop import SearchLoop, SearchPlan
from layerwise._tool.debugtools.search.driver.repeat import until_of
from layerwise._tool.debugtools.search.driver.start import Notes
from layerwise._tool.debugtools.search.judges.cluster import command_judge
from layerwise._tool.debugtools.search.judges.person import PersonJudge
from layerwise._tool.debugtools.search.judges.protocol import AfterCrash, By, Judge
from layerwise._tool.debugtools.search.rows import BuildsResult
from layerwise._tool.debugtools.search.spec import BuildsSpec, DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Verdict
from layerwise._tool.debugtools.search.strategies.repeat import RepeatResult, RepeatSearch, Until

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_FIXED = ("load_tactics", "load_timing_cache")
_MORE = 20  # builds in search of a good one to narrow by


class Builds:
    """One repetition of a build as a job."""

    def __init__(self, context: "JobContext", spec: BuildsSpec) -> None:
        if spec.search.compare is None or spec.search.compare.model is None:
            raise UsageError("there is no model to build an engine of")
        check_anew(spec.options)
        self._context, self._spec, self._compare = context, spec, spec.search.compare
        self._until = until_of(spec.search)
        engine = EngineSpec(
            model=spec.search.compare.model, output="", options=spec.options,
            model_options=spec.search.compare.model_options, marks=spec.search.compare.marks,
        )  # fmt: skip
        building = apart if spec.search.interactive else here
        self._maker = EngineMaker(context, engine, building(context, engine))
        self._history, self._notes = VerdictRows(context), Notes(context)
        if fixed := [name for name in _FIXED if getattr(spec.options, name)]:
            context.warn(f"--{fixed[0].replace('_', '-')} has every build choose the same tactics")

    def run(self) -> BuildsResult:
        """Build until it is enough; the job's result."""
        started = time.perf_counter()
        with ExitStack() as stack:
            judge = self._judge(stack)
            loop = self._loop(judge, self._until)
            counted: RepeatResult = loop.run().search.result()
            narrow = self._narrowed(judge, counted) if self._spec.narrow else None
        found = outcome(self._context, self._spec, self._maker, counted, self._trials(), narrow)
        seconds = time.perf_counter() - started
        return msgspec.structs.replace(found, checks=loop.checks, cached=loop.cached, seconds=seconds)

    def _narrowed(self, judge: Judge, counted: RepeatResult) -> Narrowed:
        """Find the tactics that do it, a good build first where there was none."""
        if counted.bad and not counted.good:
            self._loop(judge, "good", counted.bad + counted.skipped + _MORE).run()
        trials = self._trials()
        return Narrowing(self._context, self._spec.search, self._maker, judge, self._history, trials).run()

    def _loop(self, judge: Judge, until: Until, most: int | None = None) -> SearchLoop:
        """Trials until then, and no more than `most`; those that were judged count."""
        handler = BuildHandler(self._context, self._spec.search, self._notes)

        def begin() -> SearchPlan:
            search = RepeatSearch(until)
            enough = (lambda: search.progress().judged >= most) if most else lambda: False
            return SearchPlan(search, (), lambda candidate: (), enough)

        return SearchLoop(self._context, begin, handler, judge, self._history)

    def _judge(self, stack: ExitStack) -> Judge:
        inner, by = self._inner(stack)
        judge: Judge = BuildJudge(self._maker, inner, by, self._spec.search)
        crash, trying = self._context.earlier.crash, self._notes.known.trying
        return AfterCrash(judge, trying, crash) if crash and trying else judge

    def _inner(self, stack: ExitStack) -> tuple[Judge, By]:
        search, context = self._spec.search, self._context
        if search.check is not None:
            return command_judge(context, lent(context, search)), "command"
        if not self._spec.judged:
            return NoJudge(), "comparison"
        if search.interactive:
            keep = search.keep_intermediate or search.artifact in search.artifacts
            return PersonJudge(context, Path.cwd() / search.artifact, keep=keep), "person"
        if len(self._compare.runners) < 2:
            raise UsageError("nothing judges: give a side to compare with, a --check command, or answer yourself")
        engine = context.artifacts / "candidate.engine"
        setup = Setup(against(self._compare, self._spec.options, engine))
        stack.callback(setup.close)
        judge = EngineJudge(context, setup, engine)
        self._maker.fed(judge.shapes())
        return judge, "comparison"

    def _trials(self) -> list[Trial]:
        """What was judged, with its tactics, in its order."""
        rows = [row for row in self._history.rows if row.key.startswith("trial:")]
        found = [(row.verdict, self._maker.tactics(row.key.partition(":")[2])) for row in rows]
        return [Trial(verdict, tactics) for verdict, tactics in found if tactics.is_file()]


def lent(context: "JobContext", search: DebugSpec) -> DebugSpec:
    """The search, its command sharing the GPU that this job holds: it stands in a line of its own, not behind us.

    Elsewhere it finds GPUs of its own.
    """
    assert search.check is not None
    if search.check.cluster or not context.raw.get("gpus"):
        return search
    passed = {name: text for name, text in search.check.environment.items() if name != "CUDA_VISIBLE_DEVICES"}
    environment = {**passed, "LAYERWISE_LEASES": str(context.artifacts / "leases")}
    return msgspec.structs.replace(search, check=msgspec.structs.replace(search.check, environment=environment))


_DRAWN = " Tactics were drawn evenly: the rate is that of the draw, not of what TensorRT would choose."


def outcome(
    context: "JobContext", spec: BuildsSpec, maker: EngineMaker, counted: RepeatResult, trials: Sequence[Trial],
    narrow: Narrowed | None,
) -> BuildsResult:  # fmt: skip
    """The job's result; the suspects are written where --exclude-tactics finds them. narrow: None if not asked."""
    found, changing = suspects(trials), varied(trials)
    exclude = _excluded(found, trials, narrow, Path.cwd() / spec.search.artifacts_dir / "bad_tactics.json")
    if exclude is not None:
        context.log(f"Saving bad tactics to: {shown(exclude)} (leave them out with --exclude-tactics)")
    drawn = any(maker.drawn(trial.tactics.parent.name) for trial in trials)
    text = f"{counted.statement}. {f'{narrow.text} ' if narrow else _told(found, trials)}{len(changing)} layers "
    text += f"have changed their tactic from build to build.{_DRAWN if drawn else ''}"
    judged = counted.good + counted.bad > 0
    return BuildsResult(
        passed=narrow.verified if narrow else judged, search="build", verified=True, good=counted.good,
        bad=counted.bad, skipped=counted.skipped, interval=list(counted.interval), below=counted.below, summary=text,
        suspect_tactics=[suspect.row() for suspect in found], varied=dict(changing),
        bad_tactics=narrow.sets if narrow else None, files={"exclude": exclude} if exclude else {},
    )  # fmt: skip


def _told(found: Sequence[SuspectTactic], trials: Sequence[Trial]) -> str:
    verdicts = [trial.verdict for trial in trials]
    bad = verdicts.count(Verdict.BAD)
    if bad and Verdict.GOOD not in verdicts:
        return "No build passed: it may be no matter of tactics. "
    return f"{told(found, bad)} " if bad else ""


def _excluded(found: list[SuspectTactic], trials: Sequence[Trial], narrow: Narrowed | None, path: Path) -> str | None:
    """The file for --exclude-tactics: what was verified, else what is in every bad build; None if that is nothing."""
    bad = sum(trial.verdict is Verdict.BAD for trial in trials)
    layers = {each.layer: each.tactics for each in found if each.bad == bad}
    if narrow and narrow.sources:
        layers = narrow.sources
    if not layers:
        return None
    with placing(path):
        make_folder(path.parent)
        joined(layers, path)
    return str(path)


def debug_build(context: "JobContext") -> "BuildsResult":
    """Build the engine that `context.params` (a BuildsSpec) describes again and again, and have each build judged.

    Emits rows of the tables verdicts and band.
    """

    spec = read_spec(context.params, BuildsSpec, "the builds")
    return context.resumed(lambda: concluded(Builds(context, spec).run()))
