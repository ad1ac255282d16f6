"""The Debug screen's text: band, rows and body, from the events of a job."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.presenters.band import band_line, cell_states, pointer_line
from tui.presenters.debug import body_lines, head_lines
from tui.presenters.debug_rows import heading, row_line
from tui.presenters.glyphs import ASCII, UNICODE
from tui.presenters.text import plain, width
from tui.state.debugging import DebugState
from tui.state.questions import read_question

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


@given(st.integers(0, 999), st.integers(1, 1000), st.integers(3, 200), st.text("ab", max_size=60))
def test_the_pointer_stands_below_its_node(position: int, total: int, cells: int, text: str) -> None:
    position = min(position, total - 1)
    line = plain(pointer_line(position, total, cells, text))
    assert line.index("^") == 1 + min(cells - 3, position * (cells - 2) // total)


CANDIDATE = {"nodes": 38, "node": "layer.6/Add", "op": "Add", "inputs": ["a", "b"], "outputs": ["c"]}
BAND = {"runs": [["good", 184], ["asked", 1], ["unknown", 91], ["bad", 92]], "position": 184, "candidate": CANDIDATE}
VERDICTS = [
    {"n": 1, "i": 90, "node": "x", "nodes": 3, "verdict": "good", "by": "person", "seconds": 2.5, "measured": {}},
    {"n": 2, "i": 276, "node": "y", "nodes": 3, "verdict": "bad", "by": "comparison", "seconds": 0.1,
     "measured": {"tensor": "t", "max_abs": 2.1e-3, "over": 12}},
]  # fmt: skip


def searching() -> DebugState:
    debug = DebugState()
    debug.open(7, "debug_bisect", {})
    debug.take({"type": "state", "state": "running"})
    debug.take({"type": "row", "table": "band", "row": BAND})
    for verdict in VERDICTS:
        debug.take({"type": "row", "table": "verdicts", "row": verdict})
    debug.take({"type": "progress", "done": 2, "total": 7.0, "text": "layer.6/Add"})
    return debug


def test_a_search_in_lines() -> None:
    debug = searching()
    head = [plain(line) for line in head_lines(debug, "onnxruntime cuda against onnxruntime cpu", 118, UNICODE)]
    assert head[0] == "bisect  onnxruntime cuda against onnxruntime cpu  job 7 running  2 of about 7"
    assert "#184 Add layer.6/Add" in head[2]
    body = "\n".join(plain(line) for line in body_lines(debug, None, 118, UNICODE))
    assert "38 nodes  reads a, b  gives c" in body
    rows = [plain(row_line("bisect", row, 100, UNICODE)) for row in debug.rows]
    assert "✓ good" in rows[0] and "#90" in rows[0] and "person" in rows[0]
    assert "✗ bad" in rows[1] and "max abs 0.0021" in rows[1] and "12 elements over" in rows[1]
    assert plain(heading("bisect", 100)).index("verdict") == rows[0].index("✓")


def test_an_undone_verdict_is_gone() -> None:
    debug = searching()
    debug.take({"type": "row", "table": "verdicts", "row": {"n": 2, "undo": True}})
    assert [row["n"] for row in debug.rows] == [1]


def test_a_question_shows_artifact_measurement_and_keys() -> None:
    asked = {
        "id": "1.1",
        "question": {
            "text": "Did the artifact pass?", "choices": ["good", "bad", "skip", "undo"], "suggestion": "bad",
            "measured": {"tensor": "c", "max_abs": 2.1e-3},
            "artifact": {"model": "/tmp/m.onnx", "inputs": "/tmp/i.json"},
        },
    }  # fmt: skip
    question = read_question(7, asked)
    text = "\n".join(plain(line) for line in body_lines(searching(), question, 118, UNICODE))
    for part in (
        "Did the artifact pass?",
        "/tmp/m.onnx",
        "/tmp/i.json",
        "max abs 0.0021",
        "suggests  bad",
        "g good",
        "u undo",
    ):
        assert part in text


def test_what_was_found() -> None:
    debug = searching()
    found = [{"nodes": [{"i": 455, "op": "Add", "node": "n455", "outputs": ["z"]}], "path": "/tmp/found.onnx"}]
    debug.take({"type": "result", "data": {"passed": True, "summary": "1 node", "found": found, "seconds": 3.0}})
    text = "\n".join(plain(line) for line in body_lines(debug, None, 80, UNICODE))
    assert "#455 Add n455" in text and "/tmp/found.onnx" in text
    assert debug.model_path() == "/tmp/found.onnx"


@pytest.mark.parametrize("search", ["locate", "triage", "reduce"])
@given(row=st.dictionaries(st.sampled_from(["i", "op", "node", "verdict", "title", "answer", "diagnosis", "by", "n"]),
                           st.one_of(st.text(max_size=300), st.integers(), st.none())))  # fmt: skip
def test_rows_from_anywhere_stay_one_harmless_line(search: str, row: dict[str, object]) -> None:
    text = plain(row_line(search, row, 80, UNICODE))
    assert not any(ord(character) < 32 for character in text)
