"""Trials of builds: who says whether an engine is good, and what becomes of its files.

The engine is built first, then a command, two sides or a person judge it; rows are written, and the files of each trial
sorted by its verdict.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec
import numpy as np

from layerwise._tool.backends.errors import BadFile, LayerwiseError, MissingDependency, UsageError
from layerwise._tool.backends.trt.building.builder import save_engine
from layerwise._tool.backends.trt.options import Shapes, TrtOptions, to_dict
from layerwise._tool.debugtools.compare.sides.models import OpaqueModel
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.builds.maker import Build
from layerwise._tool.debugtools.search.driver.files import Files, Sorter
from layerwise._tool.debugtools.search.driver.history import Replay, replay_key
from layerwise._tool.debugtools.search.driver.loop import CandidateHandler, SearchPlan
from layerwise._tool.debugtools.search.driver.start import Notes
from layerwise._tool.debugtools.search.judges.original import RerunJudge
from layerwise._tool.debugtools.search.judges.protocol import Artifact, By, Judge, Judgement, plain_writer
from layerwise._tool.debugtools.search.rows import CandidateRow, NoteRow
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict
from layerwise._tool.surgery.cut.file import Opener

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class Maker(Protocol):
    """Builds the engine of a trial."""

    def make(self, trial: str, forced: Path | None = None) -> Build: ...
    def drawn(self, trial: str) -> bool: ...


class BuildJudge(Judge):
    """Builds what is asked about, an artifact that has but a number yet, and has `judge` say what it is worth.

    What cannot be built is bad; with tactics that we chose it is skipped, since that says nothing of the model.
    """

    def __init__(self, maker: Maker, judge: Judge, by: By, search: DebugSpec) -> None:
        self._maker, self._judge, self._by, self._search = maker, judge, by, search

    def judge(self, artifact: Artifact | None) -> Judgement:
        assert artifact is not None
        started = time.perf_counter()
        forced = Path(artifact.about.forced) if artifact.about.forced else None
        trial = artifact.about.trial
        try:
            build = self._maker.make(trial, forced)
        except (UsageError, BadFile, MissingDependency):
            raise
        except LayerwiseError as error:
            verdict = Verdict.SKIP if forced or self._maker.drawn(trial) else Verdict.BAD
            return Judgement(verdict, self._by, time.perf_counter() - started, note=str(error))
        judged = self._judge.judge(self._whole(artifact, build))
        measured = msgspec.structs.replace(judged.measured, build_seconds=round(build.seconds, 4))
        return replace(judged, seconds=time.perf_counter() - started, measured=measured)

    def _whole(self, artifact: Artifact, build: Build) -> Artifact:
        def write(path: Path, opener: Opener) -> None:
            with opener(path) as stream:
                stream.write(build.data)

        search, files = self._search, dict(build.files)
        if self._by == "comparison" and search.artifact in search.artifacts:
            files[search.artifact] = build.data
        if artifact.about.forced:
            files.clear()
        beside = {name for name in files if search.check is not None and name in search.artifacts}
        for name in files.keys() - beside:
            save_engine(files[name], Path(name))
        return replace(artifact, build=lambda: build.data, write=write, files={name: files[name] for name in beside})

    def stop(self) -> None:
        self._judge.stop()


class EngineJudge(RerunJudge):
    """The engine at `path` against the reference."""

    def __init__(self, context: "JobContext", setup: Setup, path: Path) -> None:
        super().__init__(context, setup)
        self._path = path

    def shapes(self) -> Shapes:
        """The shapes of the first inputs; none of what only the engine knows the inputs of."""
        if isinstance(self._original.suspect.model, OpaqueModel):
            return {}
        feed = next((feed for _, feed in self._original.feeds()), {})
        return {name: list(np.shape(array)) for name, array in feed.items()}

    def judge(self, artifact: Artifact | None) -> Judgement:
        assert artifact is not None
        artifact.write(self._path, plain_writer)
        try:
            return super().judge(artifact)
        finally:
            self._path.unlink(missing_ok=True)


class NoJudge(Judge):
    """Whatever can be built is good."""

    def judge(self, artifact: Artifact | None) -> Judgement:
        return Judgement(Verdict.GOOD, "comparison")


def against(compare: CompareSpec, options: TrtOptions, engine: Path) -> CompareSpec:
    """The comparison, its first side the engine at that path."""
    first = msgspec.structs.replace(
        compare.runners[0], options=to_dict(TrtOptions(engine=str(engine), run=options.run))
    )
    return msgspec.structs.replace(compare, runners=[first, *compare.runners[1:]])


Mix = Callable[[Sequence[int], str], Path]
"""Which layers take the tactics of the bad build, and the trial's name: the file of tactics."""


class BuildHandler(CandidateHandler):
    """Trials are numbered; an engine comes about when its judge wants it.

    mix: for builds that mix the tactics of two, of which nothing but the verdicts is kept.
    """

    def __init__(self, context: "JobContext", spec: DebugSpec, notes: Notes, mix: Mix | None = None) -> None:
        super().__init__(context, Replay(None, None, "", context.warn), Files(context, spec, Path.cwd()))
        self._notes, self._mix = notes, mix
        self._sorter = Sorter(context, spec.artifacts, Path.cwd() / spec.artifacts_dir)

    def artifact(self, plan: SearchPlan, candidate: Candidate, iteration: int) -> Artifact | None:
        about = CandidateRow(candidate.key, trial=str(iteration))
        if self._mix:
            trial = f"narrow-{candidate.key}"
            forced = str(self._mix([plan.order[item] for item in candidate.items], trial))
            about = CandidateRow(candidate.key, "narrow", trial=trial, forced=forced)
        return Artifact((), (), "", {}, (), bytes, _nothing, about=about, iteration=iteration)

    def asked(self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None) -> None:
        self._notes.put(NoteRow(trying=candidate.key))
        super().asked(plan, candidate, artifact)

    def told(
        self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None, judgement: Judgement, iteration: int
    ) -> None:
        if self._mix is not None:
            self._files.take(judgement, "")
            return
        super().told(plan, candidate, artifact, judgement, iteration)
        if judgement.folder is None and judgement.measured.build_seconds is not None:
            self._sorter.sort(Path.cwd(), judgement.verdict, replay_key("", iteration))


def _nothing(path: Path, opener: object) -> None:
    """Write nothing: the engine is not built yet."""
