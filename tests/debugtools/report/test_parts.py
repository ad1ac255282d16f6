"""From what a job's journal holds to its part of a report: verdicts, reasons, and nothing left out."""

import os
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from layerwise._tool.backends.jobs.journal.events import EventWriter
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.bench.rows import BenchResult, RunRow
from layerwise._tool.debugtools.checks.compatibility.spec import BackendRow, OperatorEntry
from layerwise._tool.debugtools.checks.invariants.spec import Located, RelationRow
from layerwise._tool.debugtools.compare import rows as compare
from layerwise._tool.debugtools.compare.result import Average, CompareResult
from layerwise._tool.debugtools.locate.rows import LocateResult, SuspectRow
from layerwise._tool.debugtools.report.collected import Collected
from layerwise._tool.debugtools.report.parts import folder_part, folders_report, job_part, model_path
from layerwise._tool.debugtools.report.structure import Part, counted_text
from layerwise._tool.debugtools.search.rows import Culprits, Node, NodeSearchResult, PrecisionSearchResult, VerdictRow


def part(action: str, result: Any = None, code: int = 0, **tables: list[Any]) -> Part:
    """The part of a job with this result and these rows."""
    collected = Collected()
    collected.result = None if result is None else to_builtins(result)
    collected.tables = {name: to_builtins(rows) for name, rows in tables.items()}
    return job_part(action, {}, collected, name=action, exit_code=code)


def outcomes(found: Part) -> list[tuple[str, str]]:
    return [(case.name, case.outcome) for case in found.cases]


def row(tensor: str, **fields: Any) -> compare.LayerRow:
    return compare.LayerRow(**{"i": 1, "op": "Add", "node": "n", "tensor": tensor, "size": 4, "passed": True} | fields)


def test_layers_that_were_not_compared_are_skipped_with_their_reason() -> None:
    left = [compare.NotCompared("gone", "no counterpart", "the reference has no such tensor", (0, 1)),
            compare.NotCompared("r", "random", "told by its row", (0, 1)),
            compare.NotCompared("", "iterations", "the second side has fewer", times=2)]  # fmt: skip
    result = CompareResult(passed=False, n_failed=1, not_compared=left, unmatched=["other: nothing like it"])
    rows = [row("a"), row("b", passed=False, finding="leap", max_abs=1.0, max_rel=2.0),
            row("r", passed=None, finding="skip", note="random numbers"), row("e", size=0)]  # fmt: skip
    found = part("compare", result, 1, layers=rows)
    assert outcomes(found) == [
        ("#1 Add n: a", "passed"), ("#1 Add n: b", "failed"), ("#1 Add n: r", "skipped"), ("#1 Add n: e", "skipped"),
        ("gone of runner 0 vs. runner 1 (no counterpart)", "skipped"), ("whole iterations (iterations)", "skipped"),
        ("other", "skipped"),
    ]  # fmt: skip
    assert all(case.message for case in found.cases if case.outcome != "passed")
    assert counted_text(found.counts) == "1 failed, 5 skipped, 1 passed"


def test_a_comparison_of_nothing_is_an_error() -> None:
    result = CompareResult(nothing_compared=["Nothing was compared of a and b: no output of the same name."])
    found = part("compare", result, 1)
    assert (found.outcome, [case.outcome for case in found.cases]) == ("error", ["error"])


def test_where_averages_decide_an_iteration_fails_nothing() -> None:
    averages = [Average(("a-N0-11/23/26-20:40:20", "b"), "y", "simple", 0.1, True)]
    result = CompareResult(passed=True, averages=averages)
    found = part("compare", result, 0, layers=[row("y", passed=False, max_abs=1.0)])
    assert outcomes(found) == [("y: simple of a-N0 vs. b", "passed")]
    assert [table.title for table in found.tables] == ["each iteration"]


def test_what_a_search_finds_fails_and_its_candidates_are_a_table() -> None:
    culprits = Culprits(nodes=[Node(4, "fc", "MatMul", ["y"])], path="r.onnx", minimal=True)
    verdicts = [VerdictRow(n=1, verdict="bad"), VerdictRow(n=2, verdict="good")]
    found = part("debug_reduce", NodeSearchResult(passed=True, original="bad", found=[culprits]), 0, verdicts=verdicts)
    assert outcomes(found) == [("the original model", "failed"), ("1. #4 MatMul fc", "failed")]
    assert len(found.tables[0].rows) == 2
    none = part("debug_bisect", NodeSearchResult(original="good", summary="It passes."), 1)
    assert outcomes(none) == [("the original model", "passed"), ("verdict", "failed")]
    tries = part("debug_repeat", None, 0, verdicts=verdicts)
    assert outcomes(tries) == [("try 1", "failed"), ("try 2", "passed")]
    assert outcomes(part("debug_precision", PrecisionSearchResult(original="bad"), 1)) == [("verdict", "failed")]


def test_suspects_fail_and_those_that_are_not_listed_are_told() -> None:
    suspects = [SuspectRow(i=3, node="n", op="Add", tensor="t", diagnosis="kernel", evidence="it is off", local=0.5)]
    found = part("locate", LocateResult(passed=True, suspects=suspects, n_suspects=4, tensors=9), 0)
    assert [case.outcome for case in found.cases] == ["failed", "skipped"]
    assert "3 more suspects" in found.sections[0].cases[1].message
    assert outcomes(part("locate", LocateResult(passed=True, tensors=9))) == [("no suspect among 9 tensors", "passed")]
    assert outcomes(part("locate", LocateResult(outputs_differ=True), 1)) == [("verdict", "failed")]


def test_a_backend_that_cannot_be_asked_is_an_error_and_one_that_refuses_a_failure() -> None:
    backends = [BackendRow(0, "onnxrt", takes=True, ran=True), BackendRow(1, "trt", available=False, reason="no GPU"),
                BackendRow(2, "onnx", reason="it refuses Foo")]  # fmt: skip
    operators = [OperatorEntry(0, "Add", code="elsewhere", nodes=2), OperatorEntry(2, "Foo", code="no kernel", nodes=1),
                 OperatorEntry(2, "Bar", code="unknown")]  # fmt: skip
    found = part("compatibility", None, 1, backends=backends, operators=operators)
    assert [[case.outcome for case in section.cases] for section in found.sections] == [
        ["passed", "passed"], ["error"], ["failed", "failed", "skipped"],
    ]  # fmt: skip


def test_relations_that_were_not_checked_are_skipped() -> None:
    where = Located("softmax", "Softmax", "p", 7)
    rows = [RelationRow("alone", "obeyed", ""), RelationRow("padding", "not checked", "there is no mask"),
            RelationRow("other rows", "broken", "row 1 changes", "y", 0.5, 1e-6, 1, where)]  # fmt: skip
    found = part("invariants", None, 1, relations=rows)
    assert [case.outcome for case in found.cases] == ["passed", "skipped", "failed"]
    assert (found.sections[0].cases[2].i, found.sections[0].cases[2].node) == (7, "softmax")


def test_a_bench_is_judged_by_nothing() -> None:
    found = part("bench", BenchResult(runs=[RunRow(runner="onnxrt")]), 0, runs=[RunRow(runner="onnxrt", runs=10)])
    assert outcomes(found) == [("onnxrt", "passed")]
    assert outcomes(part("bench", BenchResult())) == [("runs", "skipped")]


def test_the_folder_of_a_job_that_was_lost_tells_an_error(tmp_path: Path) -> None:
    spec = JobSpec(action="compare", params={"model": "m.onnx"}, title="run m.onnx", command=["layerwise", "run"])
    folder, lock = Workspace(tmp_path).create(spec)
    events = EventWriter(folder)
    events.write("state", state="running", attempt=1, pid=1)
    events.write("row", table="layers", row=to_builtins(row("a")))
    events.write("card", kind="signal", summary="the worker was killed by SIGSEGV", command=["layerwise", "run"])
    events.write("state", state="failed")
    events.close()
    os.close(lock)
    found = folder_part(folder, key="cell-1")
    assert (found.key, found.model, found.exit_code) == ("cell-1", "m.onnx", 1)
    assert outcomes(found) == [("#1 Add n: a", "passed"), ("carried out", "error")]
    many = folders_report("matrix", {"cell-1": folder, "cell-2": tmp_path / "jobs" / "99"})
    assert [(each.key, each.outcome) for each in many.parts] == [("cell-1", "error"), ("cell-2", "error")]
    assert many.counts == {"passed": 1, "error": 2}


def test_an_action_that_no_writer_knows_has_its_verdict() -> None:
    found = part("new_action", {"passed": False, "conclusion": "It is wrong."}, 1)
    assert outcomes(found) == [("verdict", "failed")]
    assert found.sections[0].cases[0].message == "It is wrong."


def test_the_model_is_that_of_the_comparison() -> None:
    assert model_path({"search": {"compare": {"model": "a.onnx"}}}) == "a.onnx"
    assert model_path({"compare": {"runners": [{"kind": "torch", "model": "net.py"}]}}) == "net.py"
    assert model_path({"model": 3}) == ""
