"""What a repetition of builds does with its trials: rows, and the files of each sorted by its verdict."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.debugtools.search.driver.handler import Files, RepeatHandler
from layerwise._tool.debugtools.search.driver.plans import SearchPlan
from layerwise._tool.debugtools.search.driver.replay import Replay, replay_key
from layerwise._tool.debugtools.search.driver.sorting import Sorter
from layerwise._tool.debugtools.search.driver.start import Notes
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement
from layerwise._tool.debugtools.search.rows import CandidateRow, NoteRow
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Candidate

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Mix = Callable[[Sequence[int], str], Path]
"""Which layers take the tactics of the bad build, and the trial's name: the file of tactics."""


class BuildHandler(RepeatHandler):
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
