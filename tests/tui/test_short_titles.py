"""Titles of jobs in a row: files without folders, and different ones still different."""

from itertools import combinations

from layerwise._tool.tui.presenters.short_titles import short_titles


def test_files_are_named_without_what_they_share() -> None:
    told = short_titles(["index /tmp/x/v1/net.onnx", "run /tmp/x/v2/net.onnx --runner onnxrt,model=/a/b.onnx", "lint"])
    assert [*told.values()] == ["index v1/net.onnx", "run v2/net.onnx --runner onnxrt,model=b.onnx", "lint"]


def test_no_two_files_are_shown_alike() -> None:
    parts = ["a", "b", "a/a", "a/b", "b/a", "b/b", "a/a/a", "a/b/a", "b/b/a"]
    for chosen in combinations(parts, 4):
        told = short_titles({f"index /{path}" for path in chosen})
        assert len({*told.values()}) == len(chosen), told
