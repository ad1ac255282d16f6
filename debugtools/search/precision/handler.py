"""What a precision search does with its candidates: rows, replay, files, and the best choice so far on disk."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.debugtools.search.driver.files import Files, Smallest
from layerwise._tool.debugtools.search.driver.handler import band_row
from layerwise._tool.debugtools.search.driver.history import Replay, replay_key
from layerwise._tool.debugtools.search.driver.loop import CandidateHandler, SearchPlan
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement
from layerwise._tool.debugtools.search.precision.choices import Choices
from layerwise._tool.debugtools.search.precision.setup import PrecisionSetup
from layerwise._tool.debugtools.search.rows import CandidateRow, Numbers
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class Best(Smallest):
    """The items that stay in FP32 in the model that passes."""

    def __init__(self, context: "JobContext", choices: Choices, path: Path) -> None:
        super().__init__(context, path)
        self._choices = choices

    def _write(self, found: tuple[int, ...]) -> None:
        make_folder(self.path.parent)
        self._choices.write(found, self.path)

    def _told(self, found: tuple[int, ...]) -> tuple[Sequence[int], Sequence[str]]:
        return self._choices.nodes(found), [self._choices.items[item] for item in found]


class PrecisionHandler(CandidateHandler):
    """Rows, replay, files and the best model of one search."""

    cached = True

    def __init__(self, context: "JobContext", setup: PrecisionSetup, replay: Replay, files: Files, best: Best) -> None:
        super().__init__(context, replay, files)
        self._setup, self._best = setup, best

    def artifact(self, plan: SearchPlan, candidate: Candidate, iteration: int) -> Artifact:
        return self._setup.artifact(candidate.items, candidate.key, candidate.phase, iteration)

    def asked(self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None) -> None:
        assert artifact is not None
        self._replay.begin(candidate, artifact.iteration, len(artifact.nodes))
        self._show_band(plan, artifact.about)

    def told(
        self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None, judgement: Judgement, iteration: int
    ) -> None:
        self._add(candidate, iteration, judgement.verdict, judgement.measured)
        self._replay.save()
        self._files.take(judgement, replay_key(candidate.phase, iteration))
        self._best.save(now=False)

    def retold(self, plan: SearchPlan, candidate: Candidate, verdict: Verdict, iteration: int) -> None:
        self._add(candidate, iteration, verdict, Numbers())

    def restart(self) -> None:
        super().restart()
        self._best.found = None

    def finish(self, plan: SearchPlan) -> None:
        """The search is over: what was put off is written."""
        self._replay.save()
        self._best.save()
        self._show_band(plan, None)

    def _add(self, candidate: Candidate, iteration: int, verdict: Verdict, measured: Numbers) -> None:
        self._replay.add(candidate, iteration, len(self._setup.choices.nodes(candidate.items)), verdict)
        if verdict is Verdict.GOOD:
            self._best.take(candidate.items, measured)

    def _show_band(self, plan: SearchPlan, row: CandidateRow | None) -> None:
        self._context.row("band", band_row(plan, len(self._setup.suspect.model.cut.nodes), None, row))
