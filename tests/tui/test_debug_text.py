"""The Debug screen's text: band, rows and body, from the events of a job."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from layerwise._tool.backends.jobs.journal.schema import UNEXPECTED
from layerwise._tool.debugtools.search.rows import VerdictRow
from layerwise._tool.tui.presenters.band import band_line, cell_states, pointer_line
from layerwise._tool.tui.presenters.debug import body_lines
from layerwise._tool.tui.presenters.debug_list import head_lines, heading, row_detail, row_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, plain, width
from layerwise._tool.tui.state.debug_rows import Shown, ShownStep, ShownSuspect
from layerwise._tool.tui.state.debugging import DebugState
from layerwise._tool.tui.state.questions import Question, read_question

STATES = ["good", "bad", "unknown", "skipped", "asked"]
runs_of = st.lists(st.tuples(st.sampled_from(STATES), st.integers(1, 500)), min_size=1, max_size=40)


@given(runs_of, st.integers(3, 200))
def test_a_band_fills_its_cells_and_loses_no_bad_node(runs: list[tuple[str, int]], cells: int) -> None:
    assert width(band_line(runs, cells, UNICODE)) == width(band_line(runs, cells, ASCII)) == cells
    states = cell_states(runs, cells - 2)
    at, total = 0, sum(count for _, count in runs)
    for state, count in runs:
        covered = set(states[at * (cells - 2) // total : max(1, -(-(at + count) * (cells - 2) // total))])
        if state == "bad":
            assert covered & {"bad", "asked"}
        at += count


@given(st.integers(0, 999), st.integers(1, 1000), st.integers(3, 200), st.text("ab宽", max_size=60))
def test_the_pointer_stands_below_its_node(position: int, total: int, cells: int, text: str) -> None:
    position = min(position, total - 1)
    line = plain(pointer_line(position, total, cells, text))
    before = width([(line[: line.index("^")], "")])
    assert before == 1 + min(cells - 3, position * (cells - 2) // total)
    assert width([(line, "")]) <= max(cells, before + 2)


CANDIDATE = {"nodes": 38, "node": "layer.6/Add", "op": "Add", "inputs": ["a", "b"], "outputs": ["c"]}
BAND = {"runs": [["good", 184], ["asked", 1], ["unknown", 91], ["bad", 92]], "position": 184, "candidate": CANDIDATE}
VERDICTS = [
    {"n": 1, "i": 90, "node": "x", "nodes": 3, "verdict": "good", "by": "person", "seconds": 2.5, "measured": {}},
    {"n": 2, "i": 276, "node": "y", "nodes": 3, "verdict": "bad", "by": "comparison", "seconds": 0.1,
     "measured": {"tensor": "t", "max_abs": 2.1e-3, "over": 12}},
]  # fmt: skip


def searching(*events: dict[str, object]) -> DebugState:
    debug = DebugState()
    debug.open(7, "debug_bisect", {})
    debug.take({"type": "state", "state": "running"})
    debug.take({"type": "row", "table": "band", "row": BAND})
    for verdict in VERDICTS:
        debug.take({"type": "row", "table": "verdicts", "row": verdict})
    debug.take({"type": "progress", "done": 2, "total": 7.0, "text": "layer.6/Add", "unit": "checks"})
    for event in events:
        debug.take(event)
    return debug


SIDES = ["onnxruntime cuda", "onnxruntime cpu"]


def head_of(debug: DebugState, cells: int = 118) -> list[str]:
    return [plain(line) for line in head_lines(debug, SIDES, cells, UNICODE, time.time())]


def body_of(debug: DebugState, question: Question | None = None, cells: int = 118) -> str:
    return "\n".join(plain(line) for line in body_lines(debug, question, cells, UNICODE, {"/tmp/f/m.onnx": 1200}))


def test_a_search_in_lines() -> None:
    debug = searching()
    head = head_of(debug)
    assert head[0] == "bisect  job 7   running   2 of about 7 checks"
    assert head[1] == "suspect onnxruntime cuda   reference onnxruntime cpu"
    assert "#184 Add layer.6/Add" in head[3]
    assert "38 nodes  reads a, b  gives c" in body_of(debug)
    rows = [plain(row_line(row, 100, Names(UNICODE), UNICODE)) for row in debug.rows]
    assert "✓ good" in rows[0] and "#90" in rows[0] and "person" in rows[0]
    assert "✗ bad" in rows[1] and "max abs 0.0021" in rows[1] and "12 elements over" in rows[1]
    assert plain(heading("bisect", 100)).index("verdict") == rows[0].index("✓")
    words = plain(heading("bisect", 100)).split()
    for cells in range(20, 100):
        assert plain(heading("bisect", cells)).split() == words[: len(plain(heading("bisect", cells)).split())]


def test_what_is_left_is_told_in_questions_or_in_seconds() -> None:
    asked = {"type": "question", "t": time.time()}
    waiting = searching({"type": "state", "state": "waiting"}, asked)
    assert head_of(waiting)[0].startswith("bisect  job 7   question 2 of about 6, waiting for you since ")
    slow = {"n": 3, "verdict": "good", "by": "command", "seconds": 39.9, "nodes": 1}
    row = {"type": "row", "table": "verdicts", "row": slow}
    assert head_of(searching(row))[0].endswith("checks, about 1 min 40 s left")
    counting = {"type": "progress", "done": 3, "total": 40, "unit": "reference tensors", "text": "x"}
    assert head_of(searching(counting))[0].endswith("running   3 of 40 reference tensors")


@given(st.text(max_size=300), st.text(max_size=300), st.integers(40, 200))
def test_the_head_fits_whatever_the_sides_are_called(one: str, other: str, cells: int) -> None:
    lines = head_lines(searching(), [one, other], cells, ASCII, 0.0)
    assert all(width(line) <= cells for line in lines)
    assert len(lines) == 5 and len(head_lines(searching(), [], cells, ASCII, 0.0, tall=False)) == 4


def test_an_undone_verdict_stays_and_counts_no_more() -> None:
    debug = searching({"type": "row", "table": "verdicts", "row": {"n": 1, "undo": True}})
    assert len(debug.rows) == 2 and [row.n for row in debug.counting] == [2]
    assert debug.answered == 0
    assert "✓ undone" in plain(row_line(debug.rows[0], 100, Names(UNICODE), UNICODE))


def test_a_question_shows_artifact_measurement_and_keys() -> None:
    asked = {
        "id": "1.1",
        "question": {
            "text": "Did '/tmp/f/m.onnx' pass or fail?", "choices": ["good", "bad", "skip", "undo", "auto"],
            "suggestion": "bad", "measured": {"tensor": "c", "max_abs": 2.1e-3},
            "artifact": {"model": "/tmp/f/m.onnx", "inputs": "/tmp/f/i.json"},
        },
    }  # fmt: skip
    text = body_of(searching(), read_question(7, asked))
    for part in (
        "Did 'm.onnx' pass or fail?",
        "m.onnx (1.2 kB), i.json",
        "/tmp/f ",
        "max abs 0.0021",
        "suggests bad",
        "g good",
        "u undo",
        "a let the machine finish",
    ):
        assert part in text


def test_what_was_found_and_what_to_do_with_it() -> None:
    found = [{"nodes": [{"i": 455, "op": "Add", "node": "n455", "outputs": ["z"]}], "path": "/tmp/found.onnx"}]
    result = {"passed": True, "summary": "1 node", "found": found, "seconds": 3.0, "checks": 9}
    band = {"type": "row", "table": "band", "row": {"runs": [["good", 455], ["bad", 45]], "position": None}}
    debug = searching(band, {"type": "result", "data": result}, {"type": "state", "state": "done"})
    text = body_of(debug, cells=80)
    assert "#455 Add n455" in text and "/tmp/found.onnx" in text and "o opens the model found" in text
    assert debug.model_path() == "/tmp/found.onnx"
    head = head_of(debug)
    assert head[0] == "bisect  job 7   done in 3.0 s   9 checks" and "#455 Add n455" in head[3]


def test_a_search_that_was_stopped_says_how_it_goes_on() -> None:
    stopped = searching({"type": "warning", "text": "no answer of yours"}, {"type": "state", "state": "cancelled"})
    text = body_of(stopped)
    assert "r goes on where it stopped" in text and "no answer of yours" in text


def test_a_suspect_and_a_step_in_full() -> None:
    suspect = {
        "i": 14, "node": "n14", "op": "MatMul", "diagnosis": "kernel", "local": 0.2, "local_abs": 0.1,
        "accumulated": 0.2, "amplification": None, "outputs": ["z"], "evidence": "weight w7 is not the reference's",
        "region": [{"i": 13, "node": "n13"}, {"i": 14, "node": "n14"}],
    }  # fmt: skip
    text = "\n".join(plain(line) for line in row_detail(convert(suspect, ShownSuspect), 80))
    for part in ("#14 MatMul n14", "off by more than", "weight w7", "local 0.2 (max abs 0.1)", "#13 n13, #14 n14"):
        assert part in text
    step = {"title": "Input data", "question": "Does it?", "answer": "no", "by": "user", "seconds": 0.2,
            "evidence": ["5 seeds fail"], "advice": "take real data"}  # fmt: skip
    text = "\n".join(plain(line) for line in row_detail(convert(step, ShownStep), 80))
    assert all(part in text for part in ("Input data: Does it?", "no (you, 0.2 s)", "5 seeds fail", "take real data"))


TEXTS = st.text(max_size=300)
NAMED = dict.fromkeys(["op", "node", "title", "question", "answer", "diagnosis", "by", "advice", "note"], TEXTS)
PLACES = st.one_of(st.none(), st.integers(0, 1 << 53))


@pytest.mark.parametrize("kind", [ShownSuspect, ShownStep, VerdictRow])
@given(texts=st.fixed_dictionaries(NAMED), i=PLACES, measured=st.fixed_dictionaries({"tensor": TEXTS, "note": TEXTS}))
def test_rows_from_anywhere_stay_one_harmless_line(
    kind: type[Shown], texts: dict[str, str], i: int | None, measured: dict[str, str]
) -> None:
    row = convert({**texts, "i": i, "n": 1, "verdict": "skip", "measured": measured}, kind)
    lines = [row_line(row, 80, Names(UNICODE), UNICODE), *row_detail(row, 80)]
    assert not any(ord(character) < 32 for line in lines for character in plain(line))
    assert all(width(line) <= 80 for line in lines)


DAMAGED = [
    {"n": 3}, {"n": -1, "verdict": "good"}, {"n": 3, "verdict": "odd"}, [], None, {"undo": True},
    {"n": 3, "verdict": "good", "measured": {"over": "many"}},
]  # fmt: skip


@pytest.mark.parametrize("row", DAMAGED)
def test_a_damaged_verdict_is_left_out_and_the_others_stay(row: object) -> None:
    debug = searching()
    with pytest.raises(UNEXPECTED):
        debug.take({"type": "row", "table": "verdicts", "row": row})
    assert [row.n for row in debug.counting] == [1, 2]


def test_sides_whose_names_are_too_long_stay_different() -> None:
    sides = [f"onnxruntime cpu, torch_convnext_of_timm.{form}.onnx" for form in ("dynamo", "ts13")]
    for cells in (50, 60, 78):
        line = plain(head_lines(searching(), sides, cells, UNICODE, 0.0)[1])
        one, other = line.removeprefix("suspect ").split("   reference ")
        assert not one.startswith(other.strip()[:-1]) and not other.startswith(one.strip()[:-1])
        assert len(line) <= cells
