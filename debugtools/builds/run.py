"""Building again and again as a job: trials, suspects, and, if asked, the tactics that make it fail, verified."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from backends.errors import UsageError
from debugtools.builds.building import apart, here
from debugtools.builds.desk import BuildDesk
from debugtools.builds.judging import BuildJudge, EngineJudge, NoJudge, against
from debugtools.builds.maker import Maker
from debugtools.builds.narrow import narrowed
from debugtools.builds.spec import BuildsSpec
from debugtools.builds.suspects import Suspect, Trial, saved_suspects, suspects, told, varied
from debugtools.compare.setup import Setup
from debugtools.convert.engine import EngineSpec
from debugtools.debugger.history import History
from debugtools.debugger.loop import SearchLoop
from debugtools.debugger.plans import Plan
from debugtools.debugger.repeat import until_of
from debugtools.debugger.spec import DebugSpec
from debugtools.debugger.start import Notes
from debugtools.judging.command import CommandJudge
from debugtools.judging.crash import AfterCrash, last_crash
from debugtools.judging.person import PersonJudge
from debugtools.judging.protocol import By, Judge
from debugtools.search.protocol import Verdict
from debugtools.search.repeat import RepeatResult, RepeatSearch, Until

if TYPE_CHECKING:
    from backends.jobs.context import JobContext


_MORE = 20  # builds in search of a good one to narrow by


class Builds:
    """One repetition of a build as a job."""

    def __init__(self, context: "JobContext", spec: BuildsSpec) -> None:
        if spec.search.compare is None or spec.search.compare.model is None:
            raise UsageError("there is no model to build an engine of")
        self._context, self._spec, self._compare = context, spec, spec.search.compare
        self._until = until_of(spec.search)
        engine = EngineSpec(
            model=spec.search.compare.model, output="", options=spec.options,
            model_options=spec.search.compare.model_options, marks=spec.search.compare.marks,
        )  # fmt: skip
        building = apart if spec.search.interactive else here
        self._maker = Maker(context, engine, building(context, engine))
        self._history, self._notes = History(context), Notes(context)

    def run(self) -> dict[str, Any]:
        """Build until it is enough; the job's result."""
        started = time.perf_counter()
        with ExitStack() as stack:
            judge = self._judge(stack)
            loop = self._loop(judge, self._until)
            counted: RepeatResult = loop.run().search.result()
            if self._spec.narrow and counted.bad and not counted.good:
                self._loop(judge, "good", counted.bad + counted.skipped + _MORE).run()
            trials = self._trials()
            found = suspects(trials)
            narrow = None
            if self._spec.narrow:
                narrow = narrowed(self._context, self._spec.search, self._maker, judge, self._history, trials, found)
        text = f"{counted.statement}. {narrow['text'] if narrow else _told(trials, found)} {self._text(trials)}"
        changing = varied(trials)
        return {
            "passed": narrow["verified"] if narrow else True, "search": "build", "found": [], "original": None,
            "verified": True, "good": counted.good, "bad": counted.bad, "skipped": counted.skipped,
            "interval": list(counted.interval), "below": counted.below, "summary": text, "checks": loop.checks,
            "cached": loop.cached, "replay": None, "suspect_tactics": [suspect.row() for suspect in found],
            "varied": dict(changing), "bad_tactics": narrow["bad_tactics"] if narrow else None,
            "exclude": self._exclude(trials, found, narrow), "seconds": time.perf_counter() - started,
        }  # fmt: skip

    def _loop(self, judge: Judge, until: Until, most: int | None = None) -> SearchLoop:
        """Trials until then, and no more than `most`; those that were judged count."""
        desk = BuildDesk(self._context, self._spec.search, self._notes)

        def begin() -> Plan:
            search = RepeatSearch(until)
            enough = (lambda: search.progress().judged >= most) if most else lambda: False
            return Plan(search, (), lambda candidate: (), enough)

        return SearchLoop(self._context, begin, desk, judge, self._history)

    def _judge(self, stack: ExitStack) -> Judge:
        inner, by = self._inner(stack)
        judge: Judge = BuildJudge(self._maker, inner, by, self._spec.search)
        crash, trying = last_crash(self._context), self._notes.get("trying")
        return AfterCrash(judge, trying, crash) if crash and trying else judge

    def _inner(self, stack: ExitStack) -> tuple[Judge, By]:
        search, context = self._spec.search, self._context
        if search.check is not None:
            lent = _lent(context, search)
            return CommandJudge(lent, Path.cwd(), context.artifacts / "checks", None, context.log), "command"
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
        rows = [row for row in self._history.rows if str(row["key"]).startswith("trial:")]
        found = [(Verdict(row["verdict"]), self._maker.tactics(row["key"].partition(":")[2])) for row in rows]
        return [Trial(verdict, tactics) for verdict, tactics in found if tactics.is_file()]

    def _text(self, trials: Sequence[Trial]) -> str:
        changing = varied(trials)
        text = f"{len(changing)} layers have changed their tactic from build to build."
        if any(self._maker.drawn(trial.tactics.parent.name) for trial in trials):
            text += " Tactics were drawn evenly: the rate is that of the draw, not of what TensorRT would choose."
        return text

    def _exclude(self, trials: Sequence[Trial], found: Sequence[Suspect], narrow: dict[str, Any] | None) -> str | None:
        """The file for --exclude-tactics; None where nothing is to be excluded."""
        bad = sum(trial.verdict is Verdict.BAD for trial in trials)
        layers = set(narrow["layers"]) if narrow and narrow["verified"] else None
        chosen = [each for each in found if (each.bad == bad if layers is None else each.layer in layers)]
        path = Path.cwd() / self._spec.search.artifacts_dir / "bad_tactics.json"
        return saved_suspects(chosen, path)


def _lent(context: "JobContext", search: DebugSpec) -> DebugSpec:
    """The search, its command sharing the GPU that this job holds: it stands in a line of its own, not behind us."""
    assert search.check is not None
    if not context.raw.get("gpus"):
        return search
    passed = {name: text for name, text in search.check.environment.items() if name != "CUDA_VISIBLE_DEVICES"}
    environment = {**passed, "LAYERWISE_LEASES": str(context.artifacts / "leases")}
    return msgspec.structs.replace(search, check=msgspec.structs.replace(search.check, environment=environment))


def _told(trials: Sequence[Trial], found: Sequence[Suspect]) -> str:
    verdicts = [trial.verdict for trial in trials]
    both = Verdict.BAD in verdicts and Verdict.GOOD in verdicts
    return (
        told(found, verdicts.count(Verdict.BAD)) if both else "Nothing says which tactics: no build is unlike others."
    )
