"""Journals of searches: rows as versions before types wrote them are taken up, damaged ones are not."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.debugging import as_read

from layerwise._tool.backends.jobs.context import JobContext
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.search.driver.history import VerdictRows
from layerwise._tool.debugtools.search.driver.start import Notes
from layerwise._tool.debugtools.search.judges.protocol import Judgement
from layerwise._tool.debugtools.search.rows import CandidateRow, NodeSearchResult, Numbers, VerdictRow
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

MEASURED = {"tensor": "y", "rel_l2": 0.5, "over": 3, "max_abs": 0.25, "max_rel": 1.5, "atol": 1e-5, "rtol": 1e-5}
BEFORE: list[tuple[str, dict[str, Any]]] = [
    ("verdicts", {"n": 1, "key": "original", "phase": "original", "i": None, "node": None, "op": None, "nodes": 4,
                  "verdict": "bad", "by": "comparison", "seconds": 0.5, "measured": MEASURED | {"iteration": 0},
                  "note": "", "artifact": None, "content": "", "undone": False}),
    ("verdicts", {"n": 2, "key": "a", "phase": "outputs", "i": 2, "node": "n2", "op": "Relu", "nodes": 2,
                  "verdict": "good", "by": "person", "seconds": 2.0, "measured": {}, "note": "", "artifact": None,
                  "content": "c0ffee", "undone": False}),
    ("verdicts", {"n": 3, "key": "b", "phase": "", "i": 3, "node": "n3", "op": "Add", "nodes": 1, "verdict": "skip",
                  "by": "command", "seconds": 1.0, "measured": {"exit_code": 3, "output": "/tmp/x"}, "note": "odd",
                  "artifact": "/tmp/x", "content": "beef", "undone": False}),
    ("verdicts", {"n": 2, "undo": True}),
    ("search", {"iteration": 0}),
    ("search", {"hints": [3, 1], "level": 0.0}),
    ("search", {"trying": "b"}),
]  # fmt: skip
DAMAGED: list[Any] = [{"n": "x"}, {"n": 9, "verdict": "odd"}, {"n": 9, "verdict": "good", "measured": 3}, {}]


@pytest.fixture
def later(workspace: Path) -> JobContext:
    """The second attempt of a job whose first one left these rows."""
    folder, lock = Workspace().create(JobSpec(action="debug_reduce"))
    os.close(lock)
    lines = [{"type": "row", "table": table, "row": row} for table, row in BEFORE]
    lines += [{"type": "row", "table": "verdicts", "row": row} for row in DAMAGED]
    with (folder / "events.jsonl").open("a") as journal:
        for n, line in enumerate([*lines, {"type": "state", "state": "queued", "attempt": 2}], 2):
            journal.write(json.dumps({"v": 1, "n": n, "t": 1.5, **line}) + "\n")
    return JobContext(folder, 2)


def test_rows_of_before_are_taken_up_and_damaged_ones_left_out(later: JobContext) -> None:
    history = VerdictRows(later)
    assert [(row.n, row.verdict, row.by) for row in history.rows] == [(1, "bad", "comparison"), (3, "skip", "command")]
    found = history.find("original")
    assert found == Judgement(Verdict.BAD, "comparison", 0.5, Numbers(**MEASURED, iteration=0))
    again = history.cached("beef")
    assert again is not None and again.measured.exit_code == 3 and again.note == "odd"
    known = Notes(later).known
    assert (known.iteration, known.hints, known.level, known.trying, known.auto) == (0, [3, 1], 0.0, "b", False)


@pytest.mark.parametrize("row", [row for table, row in BEFORE if table == "verdicts" and "undo" not in row])
def test_a_verdict_is_written_with_the_fields_of_before(row: dict[str, Any]) -> None:
    assert list(as_read(msgspec.convert(row, VerdictRow))) == list(row)
    assert as_read(msgspec.convert(row, VerdictRow)) == row


def test_what_is_unknown_of_a_candidate_or_a_result_is_not_written() -> None:
    assert as_read(CandidateRow("a", "outputs", 3)) == {"key": "a", "phase": "outputs", "nodes": 3}
    unfinished = as_read(NodeSearchResult(search="reduce", by="person"))
    assert "min_good" not in unfinished and {"passed", "found", "replay", "original"} <= unfinished.keys()


def test_a_verdict_goes_on_file_as_it_was_judged(later: JobContext) -> None:
    history = VerdictRows(later)
    history.add(CandidateRow("c", nodes=1), Judgement(Verdict.GOOD, "person", 1.23456), "")
    last = VerdictRows(JobContext(later.folder, 3)).rows[-1]
    assert (last.n, last.key, last.seconds, last.measured) == (4, "c", 1.2346, Numbers())
