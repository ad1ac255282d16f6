"""What the Graph screen says, as text."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper
from rich.cells import cell_len
from support.big_graph import hostile_model
from support.models import from_text, save

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.tui.presenters.around import UP, joints, neighbourhood, place
from layerwise._tool.tui.presenters.bars import title_line
from layerwise._tool.tui.presenters.graph_rows import columns, header, node_row
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.node_detail import NodeDetail
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, Line, clip, fit, merge, plain, spread, width, wrap_runs
from layerwise._tool.tui.state.graph import JumpHistory, NodeRows
from layerwise._tool.tui.state.mark_cost import MarkCost, tensor_bytes
from layerwise._tool.tui.state.session import NodeError

DIAMOND = """
main (float[1,4] x, float[N,4] y) => (float[1,4] out) {
    a = Relu(x)
    b = Sigmoid(a)
    c = Tanh(a)
    d = Add(b, c)
    out, rest = Split<axis=1, num_outputs=2>(d)
}
"""


@dataclass
class Over:
    marks: set[str] = field(default_factory=set)
    errors: dict[int, NodeError] = field(default_factory=dict)


@pytest.fixture(scope="module")
def diamond(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    folder = tmp_path_factory.mktemp("diamond")
    return build_index(ModelFile(save(from_text(DIAMOND), folder / "m.onnx")), folder / "index")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> GraphIndex:
    folder = tmp_path_factory.mktemp("hostile")
    return build_index(ModelFile(hostile_model(folder / "m.onnx")), folder / "index")


def row_text(index: GraphIndex, node: int, cells: int, over: Over | None = None) -> str:
    over = over or Over()
    return plain(node_row(index, node, columns(cells, index.n_nodes, bool(over.errors)), over, Names(UNICODE), UNICODE))


def test_a_row_names_number_operator_output_and_type(diamond: GraphIndex) -> None:
    assert row_text(diamond, 0, 60).split() == ["0", "Relu", "a", "f32", "1×4"]


def test_marks_and_errors_show_without_colour(diamond: GraphIndex) -> None:
    over = Over({"d"}, {3: NodeError(0.0041, False, "leap"), 2: NodeError(1e-7, True)})
    assert "Add" in row_text(diamond, 3, 70, over) and "●" in row_text(diamond, 3, 70, over)
    assert row_text(diamond, 3, 70, over).endswith("4.1e-03 ✗")
    assert row_text(diamond, 2, 70, over).rstrip().endswith("1.0e-07 ✓")


def test_a_node_with_some_outputs_marked_shows_it(diamond: GraphIndex) -> None:
    assert "○" in row_text(diamond, 4, 60, Over({"rest"}))


@pytest.mark.parametrize("cells", [28, 38, 44, 50, 51, 60, 76, 110, 176])
@pytest.mark.parametrize("over", [Over(), Over(errors=dict.fromkeys(range(99), NodeError(0.0041, False, "leap")))])
def test_rows_and_header_fill_the_same_cells(diamond: GraphIndex, hostile: GraphIndex, cells: int, over: Over) -> None:
    """A column is there as a whole or not at all: half an error would look like another."""
    for index in (diamond, hostile):
        at = columns(cells, 9999, bool(over.errors))
        rows = [node_row(index, node, at, over, Names(UNICODE), UNICODE) for node in range(index.n_nodes)]
        assert {*map(width, rows)} == {width(header(at))} == {cells}
        assert all(plain(row).endswith("4.1e-03 ✗") for row in rows) == bool(at.error)
        assert bool(at.error) == (bool(over.errors) and cells >= 44)


def test_hostile_names_are_shown_not_obeyed(hostile: GraphIndex) -> None:
    detail = NodeDetail(hostile, 50, UNICODE, set(), {})
    lines = [plain(line) for node in range(hostile.n_nodes) for line in detail.lines(node)]
    lines += [row_text(hostile, node, 76) for node in range(hostile.n_nodes)]
    assert all(line == shown(line) for line in lines)
    assert max(cell_len(line) for line in lines) <= 76
    assert any("[bold red]" in line for line in lines)
    assert any("\\x1b[2J" in line for line in lines)


def test_the_neighbourhood_is_drawn(diamond: GraphIndex) -> None:
    text = [plain(line).rstrip() for line in neighbourhood(diamond, 3, 40, UNICODE)]
    assert text == [
        "          Sigmoid #1  Tanh #2",
        "               └────┬────┘",
        "               ▸ Add #3 ◂",
        "                    │",
        "                Split #4",
    ]


def test_the_neighbourhood_in_ascii(diamond: GraphIndex) -> None:
    text = "\n".join(plain(line) for line in neighbourhood(diamond, 3, 40, ASCII))
    assert text.isascii() and "> Add #3 <" in text and "+----+----+" in text


def test_graph_inputs_and_outputs_are_neighbours(diamond: GraphIndex) -> None:
    assert "input x" in plain(neighbourhood(diamond, 0, 40, UNICODE)[0])
    assert "output out" in plain(neighbourhood(diamond, 4, 40, UNICODE)[-1])


def test_parents_that_do_not_fit_are_counted() -> None:
    text, places = place([f"Constant #{i}" for i in range(100)], 46, 23)
    assert text.split()[-1] == "+97" and len(places) == 4
    assert cell_len(text) <= 46


@given(st.lists(st.integers(0, 60), min_size=1, max_size=8), st.integers(0, 60))
def test_lines_reach_every_place(places: list[int], centre: int) -> None:
    drawn = joints(places, centre, UP, UNICODE)
    assert all(drawn[column] in "│└┘┴┼├┤" for column in places)
    assert len(drawn) == max(*places, centre) + 1


@given(st.text(max_size=60), st.integers(0, 50), st.sampled_from(["start", "end", "both"]))
def test_fit_gives_exactly_the_cells(text: str, cells: int, keep: str) -> None:
    fitted = fit(text, cells, keep=keep)
    assert cell_len(fitted) == cells
    assert fitted == shown(fitted)


some_runs = st.lists(st.tuples(st.text("ab宽c", max_size=20), st.sampled_from(["", "dim"])), max_size=5)


@given(some_runs, st.integers(-1, 30))
def test_wrapping_keeps_the_text_and_the_width(runs: list[tuple[str, str]], cells: int) -> None:
    lines = wrap_runs(runs, cells, 2)
    assert all(width(line) <= max(cells, 4) for line in lines)
    assert "".join(plain(line).strip() for line in lines) == plain(runs)


words = st.lists(st.text("ab宽", min_size=1, max_size=7), max_size=30).map(" ".join)


@given(words, st.integers(20, 40))
def test_wrapping_breaks_between_words(text: str, cells: int) -> None:
    lines = wrap_runs([(text, "")], cells, 2)
    assert " ".join(" ".join(plain(line).split()) for line in lines).split() == text.split()
    assert all(width(line) <= cells for line in lines)
    assert all(plain(line)[:2] == "  " and plain(line)[2] != " " for line in lines[1:])


def test_runs_are_clipped_spread_and_merged() -> None:
    assert clip([("abc", ""), ("def", "dim")], 4) == [("abc", ""), ("d", "dim")]
    assert plain(spread([("left", "")], [("right", "")], 12)) == "left   right"
    assert merge([("a", ""), ("b", ""), ("", "dim"), ("c", "")]) == [("abc", "")]


def test_the_filter_narrows_and_matches_stay_when_it_widens(diamond: GraphIndex) -> None:
    rows = NodeRows(diamond)
    rows.search("op:tanh")
    assert [rows.node_at(i) for i in range(len(rows))] == [2]
    assert not rows.holds(0) and rows.row_of(0) == 0
    rows.widen()
    assert len(rows) == diamond.n_nodes and rows.next_match(4, 1) == 2 and rows.next_match(0, -1) == 2
    rows.search("")
    assert rows.next_match(0, 1) is None


def test_history_goes_back_and_forward() -> None:
    history = JumpHistory()
    assert history.back(0) is None and history.forward(0) is None
    history.jump(0, 5)
    history.jump(5, 9)
    assert (history.back(9), history.back(5), history.back(0)) == (5, 0, None)
    assert (history.forward(0), history.forward(5), history.forward(9)) == (5, 9, None)
    history.back(9)
    history.jump(5, 7)
    assert history.forward(7) is None and history.back(7) == 5


def test_marks_are_weighed(diamond: GraphIndex) -> None:
    cost = MarkCost()
    cost.follow(diamond, {"a", "d"})
    assert (cost.nbytes, cost.open_ended) == (32, 0)
    cost.follow(diamond, {"d"})
    assert cost.nbytes == 16
    cost.follow(diamond, {"not there"})
    assert (cost.nbytes, cost.open_ended) == (0, 1)


@pytest.mark.parametrize(
    ("dtype", "shape", "expected"),
    [
        ("float32", (2, 3), (24, False)), ("int4", (3,), (2, False)), ("float32", ("N", 3), (12, True)),
        ("float16", (), (2, False)), ("float32", None, (4, True)), ("", (2,), (2, True)),
    ],
)  # fmt: skip
def test_bytes_of_a_tensor(dtype: str, shape: tuple[int | str, ...] | None, expected: tuple[int, bool]) -> None:
    assert tensor_bytes(dtype, shape) == expected


def test_inputs_and_outputs_that_differ_in_their_middle_are_told_apart(tmp_path: Path) -> None:
    names = [f"/model/{'x' * 60}/part{place}/{'y' * 60}" for place in range(4)]
    node = helper.make_node("Split", names[:1], names[1:], "split", axis=1, num_outputs=3)
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 6]) for name in names]
    graph = helper.make_graph([node], "g", ends[:1], [ends[1], *(ends[2:])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    index = build_index(ModelFile(save(model, tmp_path / "m.onnx")), tmp_path / "index")
    for cells in (38, 54, 78):
        lines = [plain(line) for line in NodeDetail(index, cells, UNICODE, set(), {}).lines(0)]
        ends_told = [line[7:].split(" f32")[0].strip() for line in lines if " f32 " in line]
        assert len(ends_told) == len({*ends_told}) == 4
        around = [part for line in lines for part in re.findall("(?:input|output) (\\S+)", line) if "f32" not in line]
        assert around and len(around) == len({*around})


def test_a_node_s_long_name_is_whole_in_its_detail(tmp_path: Path) -> None:
    name = "p" * 140 + "7" + "q" * 159
    index = build_index(ModelFile(chain_of(name, tmp_path / "m.onnx")), tmp_path / "index")
    for cells in (37, 54, 78):
        lines = [plain(line) for line in NodeDetail(index, cells, UNICODE, set(), {}).lines(0)]
        assert name in "".join(line.strip() for line in lines)


@pytest.mark.parametrize("name", [" ", "a ", "a\u00a0b"])
def test_spaces_that_nobody_would_see_are_shown(name: str, tmp_path: Path) -> None:
    index = build_index(ModelFile(chain_of(name, tmp_path / "m.onnx")), tmp_path / "index")
    lines = [plain(line) for line in NodeDetail(index, 50, UNICODE, set(), {}).lines(0)]
    escaped = {" ": "\\x20", "a ": "a\\x20", "a\u00a0b": "a\\xa0b"}[name]
    assert lines[1].rstrip() == escaped and any(line.startswith(f"out    {escaped} ") for line in lines)
    assert escaped in row_text(index, 0, 60)


def chain_of(name: str, path: Path) -> Path:
    """A model of one node, which has this name, as its output has."""
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [1, 6]) for end in ("x", name)]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], [name], name)], "g", ends[:1], ends[1:])
    return save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)


@pytest.mark.parametrize("cells", [40, 50, 60, 70, 80, 100, 120])
def test_facts_in_the_title_are_there_as_a_whole_or_not_at_all(diamond: GraphIndex, cells: int) -> None:
    status: Line = [("2 jobs 50%  1 asks", "warn")]
    text = plain(title_line(Path("torch_convnext.dynamo.onnx"), diamond, status, cells, "12 edits, not written"))
    assert len(text) == cells and text.endswith("2 jobs 50%  1 asks ")
    left = text.removesuffix("2 jobs 50%  1 asks ").rstrip()
    facts = left.split("  ")[1:]
    assert left.endswith("  12 edits, not written") or cells <= 50
    assert all(fact in ("5 nodes", "opset 21", "12 edits, not written") or fact.endswith(" B") for fact in facts)


def test_a_type_has_the_cells_that_a_short_name_leaves(tmp_path: Path) -> None:
    ends = [helper.make_tensor_value_info(end, TensorProto.FLOAT, [16, 3, 224, 224]) for end in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"], "relu")], "g", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    index = build_index(ModelFile(save(model, tmp_path / "m.onnx")), tmp_path / "index")
    for cells in (37, 44, 60):
        lines = [plain(line) for line in NodeDetail(index, cells, UNICODE, set(), {}).lines(0)]
        assert any(line.endswith("f32 16×3×224×224 output") for line in lines)
