"""What is told to have changed between two runs."""

from layerwise._tool.debugtools.matrix.against import changes
from layerwise._tool.debugtools.matrix.conclusion import conclusion
from layerwise._tool.debugtools.matrix.rows import CellRow, MatrixResult, Receipt


def row(name: str, verdict: str = "passed", digest: str = "d", version: str = "1", **parts: str) -> CellRow:
    receipt = Receipt(key="k", verdict=verdict, digest=digest, versions={"onnxruntime": version})  # type: ignore[arg-type]
    return CellRow(number=0, model=name, side="s", feed="f", action="run", receipt=receipt, parts=parts)


def test_a_verdict_or_rows_that_moved_are_told_with_what_moved_them() -> None:
    before = MatrixResult(cells=[row("same"), row("worse", model="1"), row("rows"), row("gone"), row("flaky")])
    now = [row("same"), row("worse", "failed", "e", model="2"), row("rows", digest="e", version="2"), row("new"),
           row("flaky", "failed", "e")]  # fmt: skip
    found = {change.model: (change.was, change.now, change.why) for change in changes(before, now, subset=False)}
    assert found == {
        "worse": ("passed", "failed", ["the model"]),
        "rows": ("passed", "passed", ["onnxruntime (1, now 2)"]),
        "new": ("", "passed", []),
        "gone": ("passed", "", []),
        "flaky": ("passed", "failed", []),
    }
    assert "gone" not in {change.model for change in changes(before, now, subset=True)}
    said = conclusion(now, {"passed": 3, "failed": 2}, changes(before, now, subset=False), "x")
    assert "3 of 5 cells passed; 2 failed: worse × s × f × run" in said and "worse: worse × s × f × run, flaky" in said


def test_what_an_earlier_run_of_a_part_left_out_is_not_new() -> None:
    before = MatrixResult(cells=[row("bad", "failed")], subset=True)
    found = changes(before, [row("bad"), row("good")], subset=False)
    assert [(change.model, change.was, change.now) for change in found] == [("bad", "failed", "passed")]
