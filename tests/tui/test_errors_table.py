"""The rows of a comparison as the Errors page keeps and draws them."""

import math
import time
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.layer_rows import FIVE, layer, shown, state_of

from layerwise._tool.debugtools.compare.result import CanaryReport, TruthResult
from layerwise._tool.debugtools.compare.rows import LayerRow, RowSummary
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.tui.presenters.error_detail import brief_lines, detail_lines, row_text
from layerwise._tool.tui.presenters.errors_page import (
    columns,
    head_lines,
    heading,
    minimap_cell,
    row_line,
    table_columns,
)
from layerwise._tool.tui.presenters.jobs import detail_lines as job_lines
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, Glyphs, Line, plain, width
from layerwise._tool.tui.presenters.verdicts import BAR_TITLE, DECADES, error_bar, word_of
from layerwise._tool.tui.state.error_table import BLOCK, PASSED, UNKNOWN, ErrorTable, PackedRows
from layerwise._tool.tui.state.errors_page import CLEAN, FOUND, WRONG, ErrorsState
from layerwise._tool.tui.state.job_rows import RunResult


def located(i: int, local: float, word: str) -> LayerRow:
    return layer(i, local=local, local_abs=2 * local, diagnosis=word)


def drawn(state: ErrorsState, cells: int, glyphs: Glyphs = UNICODE, sort: str = "graph") -> list[Line]:
    shape, names = table_columns(state.table, cells, sort), Names(glyphs)
    return [row_line(state.table, int(place), shape, names, glyphs) for place in state.order]


def lines_of(state: ErrorsState, cells: int, sort: str = "graph") -> list[str]:
    return [plain(line) for line in drawn(state, cells, sort=sort)]


def titles(cells: int, sort: str, glyphs: Glyphs = UNICODE, *, local: bool = False, truth: bool = False) -> Line:
    return heading(columns(cells, local, truth, sort=sort), cells, sort, False, glyphs)


def test_local_errors_join_the_rows_before_they_come_or_after() -> None:
    state = state_of(layer(0), layer(1, passed=False, finding="leap"))
    for i, local, word in ((0, 1e-7, "clean"), (1, 0.25, "kernel"), (2, 3e-7, "propagated")):
        state.table.join(located(i, local, word))
    state.table.join(located(9, 1.0, "kernel"))  # the comparison has no such row
    state.table.add(layer(2, passed=False, finding="propagated"))
    state.refresh()
    assert [state.table.row(place).local for place in range(3)] == [1e-7, 0.25, 3e-7]
    assert state.table.numbers("local_abs").tolist() == [2e-7, 0.5, 6e-7]
    assert [line.split()[-1] for line in lines_of(state, 76)] == ["ok", "kernel", "propagated"]
    assert shown(state, "local>1e-3 and diagnosis==kernel") == [1]
    assert shown(state, "accum>1e-3") == shown(state, "rel_l2>1e-3")
    state.set_filter("")
    state.sort_by("local")
    assert [int(state.table.numbers("i")[place]) for place in state.order] == [1, 2, 0]
    state.table.add(layer(1, passed=False, max_abs=7.0))  # reported again: what was joined stays
    assert (state.table.row(1).local, state.table.row(1).max_abs) == (0.25, 7.0)
    assert state.table.numbers("local")[1] == 0.25


def test_a_suspect_is_told_apart_from_what_is_off_like_all_others() -> None:
    state = state_of(*(layer(i, passed=i < 1) for i in range(4)))
    for i in range(4):
        state.table.join(located(i, 2e-4, "kernel"))
    assert state.table.at_fault().tolist() == [False, True, True, True]
    state.table.imprecise = True
    state.accuse(
        SuspectRow(i=2, op="Add", node="n", outputs=["/layer.2/out"], diagnosis="ill-conditioned", evidence="it grows")
    )
    state.refresh()
    assert state.table.at_fault().tolist() == [False, False, True, False]
    assert [line.split()[-1] for line in lines_of(state, 120)] == ["ok", "failed", "ill-conditioned", "failed"]
    assert shown(state, "suspect") == [2] and shown(state, "diagnosis==ill-conditioned") == [2]
    state.set_filter("")
    assert (state.next_leap(-1, 1), state.next_leap(2, 1)) == (2, -1)
    word = word_of(state.table, 2)
    detail = "\n".join(plain(line) for line in detail_lines(state.table.row(2), ["a", "b"], 100, word, "it grows"))
    assert "local rel-L2 2.000e-04" in detail and "makes small differences" in detail and "it grows" in detail


@given(st.integers(76, 200), st.booleans(), st.sampled_from(ErrorsState.SORTS))
def test_columns_line_up_with_their_names(cells: int, local: bool, sort: str) -> None:
    state = state_of(layer(0, passed=False))
    if local:
        state.table.join(located(0, 0.125, "ill-conditioned"))
    names, row = plain(titles(cells, sort, local=local)), lines_of(state, cells, sort)[0]
    assert width([(names, "")]) == width([(row, "")]) == cells
    if local and sort != "local":
        assert names.index("local") + 5 == row.index("0.125") + 5
        assert row.rstrip().endswith("ill-conditioned")


def test_first_bad_and_leaps() -> None:
    state = state_of(*reversed(FIVE))
    assert state.table.nodes[state.first_bad()] == "/layer.1/node"
    assert state.next_leap(-1, 1) == 2
    assert state.next_leap(2, 1) == -1
    assert state.next_leap(4, -1) == 2
    state.facts.result = RunResult(first_bad=RowSummary(tensor="/layer.2/out"))
    assert state.table.tensors[state.first_bad()] == "/layer.2/out"


def test_a_row_reported_again_replaces_the_old_one() -> None:
    state = state_of(layer(0), layer(1), layer(0, max_abs=9.0, passed=False))
    assert len(state.order) == 2
    assert state.table.row(0).max_abs == 9.0
    assert state.counts() == (1, 1, 0)


def test_the_minimap_keeps_the_worst_of_each_part() -> None:
    state = state_of(*(layer(i, passed=i != 50, finding="leap" if i == 50 else "") for i in range(100)))
    worst = state.minimap(10)
    assert list(worst) == [CLEAN] * 5 + [FOUND] + [CLEAN] * 4
    assert list(state_of(layer(0, passed=False)).minimap(3)) == [WRONG, 0, 0]
    assert plain(minimap_cell(FOUND, True, ASCII)) == "|#"


def test_many_rows_stay_quick_and_small() -> None:
    state = ErrorsState()
    state.open("7")
    rows = [layer(i, max_abs=math.sin(i) ** 2, passed=i % 3 > 0) for i in range(20_000)]
    for row in rows:
        state.table.add(row)
    began = time.process_time()
    state.set_filter("err>0.5 and failed")
    state.cycle_sort()
    state.minimap(20)
    assert time.process_time() - began < 0.5
    assert 0 < len(state.order) < 20_000
    assert state.table.row(12_345).i == 12_345


@given(st.lists(st.builds(layer, st.integers(0, 9), tensor=st.text(max_size=9)), max_size=3 * BLOCK))
@settings(max_examples=20)
def test_packed_rows_give_back_what_they_took(rows: list[LayerRow]) -> None:
    packed = PackedRows()
    for row in rows:
        packed.append(row)
    assert [packed[i] for i in range(len(packed))] == rows


@pytest.mark.parametrize("cells", [60, 76, 116, 180])
@pytest.mark.parametrize("glyphs", [ASCII, UNICODE])
def test_rows_and_heading_fill_the_width_and_line_up(cells: int, glyphs: Any) -> None:
    state = state_of(*FIVE, layer(99_999, tensor="x\x1b[31m" * 50, op="非常長", finding="overflow", passed=False))
    for sort in ErrorsState.SORTS:
        assert width(titles(cells, sort, glyphs)) == cells
    for line in drawn(state, cells, glyphs):
        assert width(line) == cells
        assert "\x1b" not in plain(line)
        assert len(line) <= 4


def test_the_head_says_who_how_far_and_whether_looking_moved_it() -> None:
    state = state_of(*FIVE)
    state.facts.state = "running"
    state.facts.runners = ["onnxrt cpu", "onnxrt cuda"]
    state.facts.done, state.facts.total, state.facts.tolerance = 5, 9, "auto"
    text = "\n".join(plain(line) for line in head_lines(state, 78, UNICODE))
    assert "onnxrt cpu  against  onnxrt cuda" in text
    assert "5 of 9" in text and "2 ✗" in text and "tolerance auto" in text
    state.facts.result = RunResult(canary=CanaryReport(False, 0.25))
    assert "canary moved 0.25" in "\n".join(plain(line) for line in head_lines(state, 78, UNICODE))


@pytest.mark.parametrize("cells", [50, 78, 118])
def test_the_head_is_never_cut_within_the_tolerance(cells: int) -> None:
    state = state_of(*FIVE)
    state.facts.runners, state.facts.state, state.facts.tolerance = ["a", "b"], "done", "abs 0.01 rel 0.01"
    state.facts.result = RunResult(canary=CanaryReport(True, 0.0))
    state.locating = "local errors of job 5, which is still running"
    standing = [plain(line) for line in head_lines(state, cells, UNICODE)[1:]]
    assert state.locating in " ".join(line.strip() for line in standing)
    assert max(map(len, standing)) <= cells
    assert standing[-1].endswith("tolerance abs 0.01 rel 0.01") == (cells == 118)


@pytest.mark.parametrize("ampl", [0.036, 1e-9, 348.7, 1e7])
def test_a_verdict_stands_in_its_column_whatever_the_amplification(ampl: float) -> None:
    state = state_of(layer(0), layer(1, ampl=ampl, finding="propagated", passed=False))
    names, (first, second) = plain(titles(76, "graph")), lines_of(state, 76)
    assert second[names.index("verdict") :].rstrip() == "propagated"
    assert first[names.index("verdict") :].rstrip() == "ok"


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("nothing", [[], ["nothing was compared of a and b (y: excluded, as asked for)"]])
def test_the_head_says_what_was_not_compared(count: int, nothing: list[str]) -> None:
    state = state_of(*FIVE)
    state.facts.state = "done"
    item = {"tensor": "z", "reason": "no counterpart", "text": "b does not give it", "layer": False}
    quiet = [item | {"reason": "excluded"}, item | {"layer": True}, item | {"reason": "random"}]
    result = {"nothing_compared": nothing, "not_compared": [*quiet, *[item] * count]}
    state.facts.result = msgspec.convert(result, RunResult)
    lines = [plain(line) for line in head_lines(state, 78, UNICODE)]
    assert (f"{count} not compared" in "\n".join(lines)) == (count > 0)
    assert any("nothing was compared of a and b" in line for line in lines) == bool(nothing)
    view = SimpleNamespace(
        id=3, attempt=1, counts={}, warnings=0, reason="", progress=None, folder="f", card=None, damage="",
        result=result, outcome="failed", state="done", final=True,
    )  # fmt: skip
    told = "\n".join(plain(line) for line in job_lines(view, None, None, 100, UNICODE))  # type: ignore[arg-type]
    assert told.count("not compared  z: b does not give it") == min(count, 5)
    assert ("7 in all" in told) == (count == 7) and ("nothing was compared" in told) == bool(nothing)


def test_a_tensor_without_elements_has_no_verdict() -> None:
    state = state_of(
        *(msgspec.structs.replace(row, size=size, passed=True) for row, size in zip(FIVE, (0, 4, 0, 4, 0), strict=True))
    )
    assert state.table.verdicts().tolist() == [UNKNOWN, PASSED, UNKNOWN, PASSED, UNKNOWN]


def test_the_detail_of_a_row_shows_both_sides_and_never_obeys_names() -> None:
    stats = {"mean": 1.0, "std": 2.0, "min": -1.0, "max": 3.0, "avg_magnitude": 1.5, "argmin": [0], "argmax": [1]}
    row = layer(2, tensor="\x1b[2Jx", stats=[stats, stats], nan=[0, 3], required={"abs": 0.5, "rel": 0.1})
    text = "\n".join(plain(line) for line in detail_lines(row, ["a", "b"], 100))
    assert "\\x1b[2Jx" in text and "\x1b" not in text
    assert "float32 / float16 2x3" in text
    assert "needs atol 0.5" in row_text(row, ["a", "b"])


@pytest.mark.parametrize("name", ["where", "/encoder/layer.0/attention/self/Where_output_0" * 3])
def test_a_reason_longer_than_a_line_begins_behind_the_name(name: str) -> None:
    note = "864 of 2048 elements are sentinels (-3.403e+38), alike on both sides: left out"
    lines = brief_lines(layer(0, tensor=name, note=note), 78, ("failed", "bad"), UNICODE)
    assert len(lines) == 2 and max(map(width, lines)) <= 79
    told = " ".join("".join(map(plain, lines)).split())
    assert told.startswith(name[:5]) and told.endswith(f"failed: {note}")
    long = brief_lines(layer(0, tensor=name, note=note * 5), 78, ("failed", "bad"), UNICODE)
    assert len(long) == 2 and max(map(width, long)) <= 79 and plain(long[1]).endswith("… enter")


def test_an_empty_table_has_no_first_bad() -> None:
    table = ErrorTable()
    assert table.first_bad() == -1
    assert len(table.in_graph_order()) == 0
    assert np.all(table.found() == np.zeros(0, bool))


@pytest.mark.parametrize("cells", [80, 140])
def test_how_far_a_layer_is_from_the_truth_is_a_column(cells: int) -> None:
    far, none = {"suspect": 140.4, "reference": 0.8, "kind": "float16"}, {"why": "Foo cannot be evaluated in FP64"}
    state = state_of(layer(0, truth=far), layer(1, truth=none), layer(2))
    assert "×▾" in plain(titles(cells, "times", truth=True))
    assert state.table.has_truth and "times" in state.sorts_shown()
    column = plain(titles(cells, "graph", truth=True)).index("×")
    lines = lines_of(state, cells)
    assert [line[: column + 1].split()[-1] for line in lines[:2]] == ["140", "-"]
    assert all(len(line) == cells for line in lines)
    assert shown(state, "times>4") == [0]
    detail = row_text(state.table.row(0), ["a", "b"])
    assert "truth ×140 float16  reference ×0.8" in detail
    assert "truth none: Foo cannot be evaluated" in row_text(state.table.row(1), ["a", "b"])


def test_the_head_says_whether_the_suspect_is_acceptable() -> None:
    state = state_of(layer(0))
    text = "Not acceptable: #0 Add is off by 140 times what FP16 rounding explains"
    state.facts.result = RunResult(truth=TruthResult(acceptable=False, text=text))
    assert text in [plain(line).rstrip() for line in head_lines(state, 120, UNICODE)]


FACES = [
    (cells, known, sort) for cells in (56, 76, 116) for known in ("", "local", "truth") for sort in ("graph", "ampl")
]


@pytest.mark.parametrize(("cells", "known", "sort"), FACES)
def test_numbers_give_way_before_names_and_verdicts(cells: int, known: str, sort: str) -> None:
    shape = columns(cells, known == "local", known == "truth", sort=sort)
    assert shape.verdict >= len("ill-conditioned" if known == "local" else "propagated")
    assert shape.tensor >= 16
    assert cells < 76 or {"local" if known == "local" else "rel_l2", sort} - {"graph"} <= set(shape.numbers)
    heading_text = plain(heading(shape, cells, sort, False, UNICODE))
    assert (BAR_TITLE in heading_text) == bool(shape.bar) and "verdict" in heading_text


@pytest.mark.parametrize(
    ("value", "cells", "role"),
    [(0.0, 0, ""), (1e-12, 0, "decade1"), (1e-7, 1, "decade1"), (1.01e-3, 5, "decade6"), (0.5, 7, "decade8"),
     (40.0, 8, "decade8"), (math.inf, 8, "bad"), (math.nan, 0, "")],
)  # fmt: skip
def test_a_bar_has_a_cell_for_each_power_of_ten(value: float, cells: int, role: str) -> None:
    text, found = error_bar(value, False, UNICODE)
    assert (text.count("\u2588"), found, len(text)) == (cells, role, DECADES)
    ascii_text, _ = error_bar(value, False, ASCII)
    assert ascii_text.isascii() and len(ascii_text) == DECADES
    assert error_bar(math.nan, True, ASCII) == (ASCII.bars[-1] * DECADES, "bad")


@pytest.mark.parametrize("finding", ["propagated", "ill-conditioned"])
def test_no_finding_is_cut(finding: str) -> None:
    state = state_of(layer(0, finding=finding, passed=True))
    assert lines_of(state, 80)[-1].rstrip().endswith(finding)


def test_a_row_that_is_told_in_full_has_whole_names_and_a_brief_one_differs_from_its_neighbours() -> None:
    names = [f"/model/{'x' * 60}/part{place}/{'y' * 60}" for place in range(3)]
    row = layer(0, tensor=names[0], node=names[1])
    whole = "".join(plain(line).strip() for line in detail_lines(row, ["a", "b"], 78))
    assert names[0] in whole and names[1] in whole
    for word in (("ok", "good"), ("failed", "bad")):
        for note in ("", "864 of 2048 elements are sentinels (-3.403e+38), alike on both sides: left out"):
            told = brief_lines(layer(0, tensor=names[0], note=note), 78, word, UNICODE, names)
            assert "part0" in plain(told[0]) + plain(told[1])
    assert "\\x20" in plain(detail_lines(layer(0, tensor=" "), ["a", "b"], 78)[0])


def test_sides_whose_names_are_too_long_stay_different() -> None:
    state = state_of(*FIVE)
    state.facts.runners = [f"onnxruntime cpu, torch_convnext_of_timm.{form}.onnx" for form in ("dynamo", "ts13")]
    for cells in (50, 60, 78):
        line = head_lines(state, cells, UNICODE)[0]
        one, other = plain(line).split("  against  ")
        assert not one.startswith(other.strip()[:-1]) and not other.startswith(one.strip()[:-1])
        assert width(line) <= cells
