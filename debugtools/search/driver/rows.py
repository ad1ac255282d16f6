"""Rows of a search's tables, as the command line, the app and files read them."""

from collections.abc import Sequence
from typing import cast

from layerwise._tool.debugtools.search.driver.plans import SearchPlan
from layerwise._tool.debugtools.search.judges.protocol import Artifact, By, Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.rows import BandRow, CandidateRow, Node, VerdictRow
from layerwise._tool.debugtools.search.strategies.protocol import Candidate

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


def verdict_row(n: int, candidate: CandidateRow, judgement: Judgement, content: str) -> VerdictRow:
    """A row of table `verdicts`."""
    return VerdictRow(
        n=n, key=candidate.key, phase=candidate.phase, i=candidate.i, node=candidate.node, op=candidate.op,
        nodes=candidate.nodes, verdict=judgement.verdict, by=judgement.by, seconds=round(judgement.seconds, 4),
        measured=judgement.measured, note=judgement.note, artifact=judgement.measured.output, content=content,
    )  # fmt: skip


def judgement_of(row: VerdictRow) -> Judgement:
    """What a row of table `verdicts` says."""
    return Judgement(row.verdict, cast(By, row.by), row.seconds, row.measured, row.note)


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
