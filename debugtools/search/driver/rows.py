"""Rows of a search's tables, as the command line, the app and files read them."""

from collections.abc import Sequence
from typing import Any

from layerwise._tool.debugtools.search.driver.plans import Plan
from layerwise._tool.debugtools.search.judges.protocol import Artifact, Judgement
from layerwise._tool.debugtools.search.judges.subject import Subject
from layerwise._tool.debugtools.search.strategies.protocol import Candidate, Verdict

Row = dict[str, Any]
_NAMES = 20  # a prefix of a large graph crosses hundreds of tensors: lists in rows are cut


def about(subject: Subject, plan: Plan, candidate: Candidate, artifact: Artifact) -> Row:
    """A candidate as rows show it; `i` is the node where it is cut, or its only one."""
    i = None if candidate.position is None else plan.order[candidate.position]
    if i is None and len(artifact.nodes) - len(artifact.glue) == 1:
        i = next(node for node in artifact.nodes if node not in artifact.glue)
    place = subject.describe(i) if i is not None else {"i": None, "node": "", "op": ""}
    return {
        "key": candidate.key, "phase": candidate.phase, "nodes": len(artifact.nodes),
        "i": place["i"], "node": place["node"], "op": place["op"],
        "inputs": list(artifact.feeds)[:_NAMES], "outputs": list(artifact.gives)[:_NAMES],
        "glue": [subject.describe(j)["node"] for j in artifact.glue[:_NAMES]],
    }  # fmt: skip


def verdict_row(n: int, candidate: Row, judgement: Judgement, content: str) -> Row:
    """A row of table `verdicts`."""
    row = {key: candidate.get(key) for key in ("key", "phase", "i", "node", "op", "nodes")}
    return {
        "n": n, **row, "verdict": judgement.verdict.value, "by": judgement.by, "seconds": round(judgement.seconds, 4),
        "measured": judgement.measured, "note": judgement.note, "artifact": judgement.measured.get("output"),
        "content": content, "undone": False,
    }  # fmt: skip


def judgement_of(row: Row) -> Judgement:
    """What a row of table `verdicts` says."""
    return Judgement(Verdict(row["verdict"]), row["by"], row["seconds"], row["measured"], row.get("note", ""))


def band_row(plan: Plan, total: int, position: int | None, candidate: Row | None) -> Row:
    """A row of table `band`: runs of states over all `total` nodes. Nodes that are not asked about are good."""
    states: list[str] = []
    for state, count in plan.search.band():
        states += [state] * count
    spread = _spread(states, plan.order, total)
    return {"runs": spread, "position": None if position is None else plan.order[position], "candidate": candidate}


def _spread(states: Sequence[str], order: Sequence[int], total: int) -> list[list[Any]]:
    found: list[list[Any]] = []
    at = 0
    for state, i in zip(states, order, strict=False):
        if i > at:
            _extend(found, "good" if not found else found[-1][0].replace("asked", "unknown"), i - at)
        _extend(found, state, 1)
        at = i + 1
    if total > at:
        _extend(found, "good", total - at)
    return found


def _extend(found: list[list[Any]], state: str, count: int) -> None:
    if found and found[-1][0] == state:
        found[-1][1] += count
    else:
        found.append([state, count])
