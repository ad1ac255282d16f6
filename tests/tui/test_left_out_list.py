"""What a comparison did not compare, and why, as the list of the Errors page."""

from layerwise._tool.debugtools.compare.rows import NotCompared
from layerwise._tool.tui.presenters.left_out import left_out_entries, title
from layerwise._tool.tui.presenters.text import plain, width
from layerwise._tool.tui.state.job_rows import RunFacts, RunResult


def test_each_reason_is_told_once_with_its_tensors_and_what_nobody_asked_for_comes_first() -> None:
    items = [
        NotCompared("a", "excluded", "as asked for"),
        NotCompared("b", "no counterpart", "runner-1 does not give it", layer=True),
        NotCompared("c\x1b", "no counterpart", "runner-1 does not give it", layer=True),
        NotCompared("d", "empty", "no elements on either side"),
        NotCompared("", "iterations", "the reference has one iteration fewer"),
    ]
    facts = RunFacts(
        runners=["cpu", "cuda, b.onnx"], result=RunResult(not_compared=items, runners=["runner-0", "runner-1"])
    )
    entries = left_out_entries(facts, 60)
    told = [(tensor, " ".join(plain(line).strip() for line in lines)) for tensor, lines in entries]
    assert told == [
        ("", "1 tensor: no elements on either side"), ("d", "d"),
        ("", "the reference has one iteration fewer"),
        ("", "2 tensors: cuda, b.onnx does not give it"), ("b", "b"), ("c\x1b", "c\\x1b"),
        ("", "1 tensor: as asked for"), ("a", "a"),
    ]  # fmt: skip
    assert max(width(line) for _, lines in left_out_entries(facts, 20) for line in lines) <= 20
    assert title(items).startswith("Not compared: 4 tensors")
