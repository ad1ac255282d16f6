"""What a search over nodes does with its candidates: rows, replay, files."""

import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.debugtools.search.driver.best import Best
from layerwise._tool.debugtools.search.driver.plans import SearchPlan
from layerwise._tool.debugtools.search.driver.replay import Replay, replay_key
from layerwise._tool.debugtools.search.driver.rows import about, band_row
from layerwise._tool.debugtools.search.driver.sorting import Sorter, captured
from layerwise._tool.debugtools.search.driver.start import Notes
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import BandRow, CandidateRow, NoteRow
from layerwise._tool.debugtools.search.spec import DebugSpec
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_BAND_EVERY = 0.1  # seconds, where candidates come faster than anybody looks


class Files:
    """What commands leave: output that is shown, artifacts that are sorted, the candidate if it is to stay."""

    def __init__(self, context: "JobContext", spec: DebugSpec, home: Path) -> None:
        self._context, self._spec, self._home = context, spec, home
        self._sorter = Sorter(context, spec.artifacts, home / spec.artifacts_dir)

    def take(self, judgement: Judgement, suffix: str) -> None:
        """Show, sort and keep what a run left; the rest is removed. suffix: "" where nothing is to be sorted."""
        if judgement.folder is None:
            return
        self._show(judgement, judgement.folder)
        run = judgement.folder / "run"
        if suffix:
            self._sorter.sort(run, judgement.verdict, suffix)
        kept, candidate = self._home / self._spec.artifact, run / self._spec.artifact
        if self._spec.keep_intermediate and suffix and candidate.is_file() and candidate.resolve() != kept.resolve():
            shutil.move(candidate, kept)
        elif not self._spec.keep_intermediate and len(Path(self._spec.artifact).parts) > 1:
            kept.unlink(missing_ok=True)
        if self._spec.check is not None and self._spec.check.parallel == 1:
            self._keep(run)
        shutil.rmtree(run, ignore_errors=True)

    def _keep(self, run: Path) -> None:
        """Move what a command wrote besides to the user's folder, where a command that runs there leaves it."""
        stem = Path(self._spec.artifact).stem
        own = {self._spec.artifact, self._spec.iter_info, *self._spec.artifacts}
        for path in sorted(run.iterdir()):
            mine = path.name in own or path.stem in (f"{stem}_inputs", f"{stem}_outputs") or path.is_symlink()
            if not mine and (path.is_file() or not (self._home / path.name).exists()):
                shutil.move(path, self._home / path.name)

    def _show(self, judgement: Judgement, folder: Path) -> None:
        check = self._spec.check
        assert check is not None
        bad = judgement.verdict is Verdict.BAD
        if check.show_output or not bad or check.hide_fail_output:
            return  # shown while it ran, or not at all
        self._context.log(f"========== CAPTURED STDOUT ==========\n{captured(folder / 'stdout.txt')}")
        self._context.log(f"========== CAPTURED STDERR ==========\n{captured(folder / 'stderr.txt')}", "error")


class ModelHandler:
    """best: None for a search that makes no smaller model.

    notes: for candidates that run in this process, by the hundred: what is tried is noted, should it bring us down.
    """

    def __init__(
        self, context: "JobContext", subject: Subject, replay: Replay, files: Files, best: Best | None, *,
        cached: bool = True, notes: Notes | None = None,
    ) -> None:  # fmt: skip
        self._context, self._subject, self._replay = context, subject, replay
        self._files, self._best, self.cached = files, best, cached
        self._notes, self._quick = notes, notes is not None
        self._band = 0.0

    def artifact(self, plan: SearchPlan, candidate: Candidate, iteration: int) -> Artifact:
        made = self._subject.artifact(plan.nodes(candidate))
        return replace(made, about=about(self._subject, plan, candidate, made), iteration=iteration)

    def asked(self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None) -> None:
        assert artifact is not None
        if self._notes is not None:
            self._notes.put(NoteRow(trying=candidate.key))
        else:
            self._replay.begin(candidate, artifact.iteration, self._count(artifact))
        self._show_band(plan, candidate.position, artifact.about)

    def known(self, candidate: Candidate, iteration: int) -> Verdict | None:
        return self._replay.find(candidate, iteration)

    def told(
        self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None, judgement: Judgement, iteration: int
    ) -> None:
        assert artifact is not None
        self._replay.add(candidate, iteration, self._count(artifact), judgement.verdict)
        self._replay.save(now=not self._quick)
        self._files.take(judgement, replay_key(candidate.phase, iteration))
        if self._best is not None:
            self._note(plan, candidate, judgement)
            self._best.save(now=False)

    def retold(self, plan: SearchPlan, candidate: Candidate, verdict: Verdict, iteration: int) -> None:
        self._replay.add(candidate, iteration, len(plan.nodes(candidate)), verdict)
        self._note(plan, candidate, Judgement(verdict, "cache"))

    def restart(self) -> None:
        self._replay.clear()
        if self._best is not None:
            self._best.clear()

    def finish(self, plan: SearchPlan) -> None:
        """The search is over: what was put off is written."""
        self._replay.save()
        if self._best is not None:
            self._best.save()
        self._band = 0.0
        self._show_band(plan, None, None)

    def _note(self, plan: SearchPlan, candidate: Candidate, judgement: Judgement) -> None:
        if self._best is None:
            return
        if judgement.verdict is Verdict.BAD:
            self._best.take(plan.nodes(candidate), judgement.measured)
        elif judgement.verdict is Verdict.GOOD:
            self._best.good(plan.nodes(candidate))

    def _count(self, artifact: Artifact) -> int:
        """Nodes as Polygraphy counts them."""
        nodes = self._subject.cut.nodes
        return sum(nodes[i].op_type != "Constant" for i in artifact.nodes)

    def _show_band(self, plan: SearchPlan, position: int | None, row: CandidateRow | None) -> None:
        now = time.monotonic()
        if self._quick and now - self._band < _BAND_EVERY:
            return
        self._band = now
        self._context.row("band", band_row(plan, len(self._subject.cut.nodes), position, row))


class RepeatHandler:
    """The same thing again and again: no model, no cache. iteration: of the last candidate."""

    cached = False
    iteration = 0

    def __init__(self, context: "JobContext", replay: Replay, files: Files) -> None:
        self._context, self._replay, self._files = context, replay, files

    def artifact(self, plan: SearchPlan, candidate: Candidate, iteration: int) -> Artifact | None:
        self.iteration = iteration
        return None

    def asked(self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None) -> None:
        self._replay.begin(candidate, self.iteration, None)
        self._context.row("band", BandRow([*plan.search.band()]))

    def known(self, candidate: Candidate, iteration: int) -> Verdict | None:
        return self._replay.find(candidate, iteration)

    def told(
        self, plan: SearchPlan, candidate: Candidate, artifact: Artifact | None, judgement: Judgement, iteration: int
    ) -> None:
        self._replay.add(candidate, iteration, None, judgement.verdict)
        self._replay.save()
        self._files.take(judgement, replay_key(candidate.phase, iteration))

    def retold(self, plan: SearchPlan, candidate: Candidate, verdict: Verdict, iteration: int) -> None:
        self._replay.add(candidate, iteration, None, verdict)

    def restart(self) -> None:
        self._replay.clear()
