"""What a search over nodes does with its candidates: rows, replay, files."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from layerwise._tool.debugtools.search.driver.files import Best, Files
from layerwise._tool.debugtools.search.driver.history import Replay, replay_key
from layerwise._tool.debugtools.search.driver.loop import CandidateHandler, SearchPlan
from layerwise._tool.debugtools.search.driver.start import Notes
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import (
    BandRow,
    CandidateRow,
    Node,
    NoteRow,
)
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


_BAND_EVERY = 0.1  # seconds, where candidates come faster than anybody looks


class ModelHandler(CandidateHandler):
    """best: None for a search that makes no smaller model.

    notes: for candidates that run in this process, by the hundred: what is tried is noted, should it bring us down.
    """

    def __init__(
        self, context: "JobContext", subject: Subject, replay: Replay, files: Files, best: Best | None, *,
        cached: bool = True, notes: Notes | None = None,
    ) -> None:  # fmt: skip
        super().__init__(context, replay, files)
        self._subject, self._best, self.cached = subject, best, cached
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
        super().restart()
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


_NAMES = 20  # a prefix of a large graph crosses hundreds of tensors: lists in rows are cut


def about(subject: Subject, plan: SearchPlan, candidate: Candidate, artifact: Artifact) -> CandidateRow:
    """A candidate as rows show it; `i` is the node where it is cut, or its only one."""
    i = None if candidate.position is None else plan.order[candidate.position]
    if i is None and len(artifact.nodes) - len(artifact.glue) == 1:
        i = next(node for node in artifact.nodes if node not in artifact.glue)
    place = subject.describe(i) if i is not None else Node()
    return CandidateRow(
        candidate.key, candidate.phase, len(artifact.nodes), place.i, place.node, place.op,
        inputs=list(artifact.feeds)[:_NAMES], outputs=list(artifact.gives)[:_NAMES],
        glue=[subject.describe(j).node for j in artifact.glue[:_NAMES]],
    )  # fmt: skip


def band_row(plan: SearchPlan, total: int, position: int | None, candidate: CandidateRow | None) -> BandRow:
    """A row of table `band`: runs of states over all `total` nodes. Nodes that are not asked about are good."""
    states: list[str] = []
    for state, count in plan.search.band():
        states += [state] * count
    spread = _spread(states, plan.order, total)
    return BandRow(spread, None if position is None else plan.order[position], candidate)


def _spread(states: Sequence[str], order: Sequence[int], total: int) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    at = 0
    for state, i in zip(states, order, strict=False):
        if i > at:
            _extend(found, "good" if not found else found[-1][0].replace("asked", "unknown"), i - at)
        _extend(found, state, 1)
        at = i + 1
    if total > at:
        _extend(found, "good", total - at)
    return found


def _extend(found: list[tuple[str, int]], state: str, count: int) -> None:
    if found and found[-1][0] == state:
        count += found.pop()[1]
    found.append((state, count))
