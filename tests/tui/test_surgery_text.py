"""What Surgery says, as text: what is typed, a change before it is made, the history, two graphs side by side."""

from pathlib import Path

import onnx
import pytest
from rich.cells import cell_len
from support.big_graph import chain_model, hostile_model
from support.two_exports import first, second

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits.nodes import DeleteNodes, InsertNode
from layerwise._tool.surgery.edits.operands import Constant
from layerwise._tool.surgery.graph.build import build_index
from layerwise._tool.tui.controllers.edited_model import EditedModel
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.preview import preview_lines, step_lines
from layerwise._tool.tui.presenters.surgery import (
    branch_row,
    branches,
    edited_text,
    effect_text,
    heading,
    pair_lines,
    side_row,
)
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, plain, width
from layerwise._tool.tui.state.session import Session
from layerwise._tool.tui.state.surgery import Check, Gap, SideRows, Step, SurgeryState

RELU = "/encoder/layer.1/Relu"


def opened(path: Path, root: Path) -> EditedModel:
    with ModelFile(path) as file:
        return EditedModel(path, build_index(file, root / "index"), root)


@pytest.fixture
def edited(tmp_path: Path) -> EditedModel:
    return opened(chain_model(tmp_path / "chain.onnx", 70), tmp_path)


def test_another_export_stands_beside_its_counterparts(tmp_path: Path) -> None:
    paths = [tmp_path / "first.onnx", tmp_path / "second.onnx"]
    for path, model in zip(paths, (first(), second()), strict=True):
        onnx.save(model, path)
    with ModelFile(paths[1]) as file:
        index = build_index(file, tmp_path / "other")
    sides = opened(paths[0], tmp_path).beside(index, paths[1])
    left, right = ([node.name or node.output[0] for node in onnx.load(path).graph.node] for path in paths)
    pairs = {left[pair.left]: right[pair.right] for pair in sides.pairs if pair.left >= 0 and pair.right >= 0}
    assert {"/fc/Add": "2", "/norm": "12", "/soft": "16", "/residual": "19"}.items() <= pairs.items()
    assert (sides.count("-"), sides.count("+")) == (2, 10)


def node(edited: EditedModel, name: str) -> int:
    return edited.overlay().find_node(name)


def test_what_is_typed_becomes_edits(edited: EditedModel) -> None:
    here = [node(edited, RELU)]
    (found,) = edited.words("insert", "Clip with -1 with 6:float32 before", here)
    assert isinstance(found, InsertNode)
    assert (found.op, found.tensor, found.readers) == ("Clip", "/encoder/layer.1/Add_output_0", (RELU,))
    assert found.operands == (Constant(values=-1), Constant(values=6))
    (found,) = edited.words("insert", "com.x:Gelu alpha=0.5 on x", here)
    assert isinstance(found, InsertNode)
    assert (found.domain, found.op, found.tensor, found.attributes) == ("com.x", "Gelu", "x", {"alpha": 0.5})
    (found,) = edited.words("delete", "/encoder/layer.2/Mul", here)
    assert found == DeleteNodes(nodes=("/encoder/layer.2/Mul",))
    (found,) = edited.words("edit", "bypass ops=Relu,Tanh", here)
    assert found.describe() == "bypass all Relu, Tanh"


@pytest.mark.parametrize(
    ("verb", "text", "reason"),
    [
        ("insert", "", "which operator"), ("insert", "Relu what", "write name=value"), ("attr", "x", "NAME=VALUE"),
        ("insert", "'Relu", "No closing quotation"), ("precision", "int3", "float16 or bfloat16"),
        ("extract", "sideways", "write alone"), ("edit", "nothing", "kinds of edits"), ("op", "A B", "which operator"),
        ("edit", "set-batch size", "write field=value"), ("edit", "set-batch nope=1", "there is no field"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_said(edited: EditedModel, verb: str, text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        edited.words(verb, text, [node(edited, RELU)])


def test_names_operators_and_fields_are_completed(edited: EditedModel) -> None:
    here = [node(edited, RELU)]
    assert "LeakyRelu" in edited.complete("replace", "Leaky", here)
    assert edited.complete("insert", "LeakyRelu al", here) == ["LeakyRelu alpha="]
    assert edited.complete("insert", "Add with layer.9/Tanh", here) == ["Add with /encoder/layer.9/Tanh_output_0"]
    assert edited.complete("delete", "layer.9/T", here) == ["/encoder/layer.9/Tanh"]
    assert "set-batch" in edited.complete("edit", "set-b", here)
    assert "delete-node nodes=/encoder/layer.9/Tanh" in edited.complete("edit", "delete-node nodes=layer.9/T", here)
    assert edited.complete("extract", "x ", here)[-1].endswith("->") or edited.complete("extract", "x -", here) == [
        "x ->"
    ]


@pytest.mark.parametrize("cells", [78, 118])
def test_a_change_before_it_is_made(edited: EditedModel, cells: int) -> None:
    preview = edited.attempt(edited.words("delete", "", [node(edited, RELU)]))
    assert "being followed" in "".join(plain(line) for line in preview_lines(preview, None, cells, 99, UNICODE))
    edited.follow(preview)
    lines = [plain(line) for line in preview_lines(preview, None, cells, 99, UNICODE)]
    text = "\n".join(lines)
    assert all(cell_len(line) <= cells for line in lines)
    assert f"removed  -1  Relu {RELU}" in text and "reads /encoder/layer.1/Add_output_0" in text
    assert "1 of 1 outputs" in text and "being inferred" in text and "enter applies" in lines[0]
    check = Check(["Relu: no"], [("t", "float32 1x2", "float16 1x2")])
    text = "\n".join(plain(line) for line in preview_lines(preview, check, cells, 99, UNICODE))
    assert "broken: Relu: no" in text and "work in progress" in text and "t f32 1x2 becomes f16 1x2" in text
    failed = "\n".join(plain(line) for line in preview_lines(preview, Check(failed="gone"), cells, 99, UNICODE))
    assert "could not be checked: gone" in failed
    assert all(plain(line).isascii() for line in preview_lines(preview, check, cells, 99, ASCII))


def test_a_long_check_leaves_a_row_to_every_fact(edited: EditedModel) -> None:
    preview = edited.attempt(edited.words("delete", "", [node(edited, RELU)]))
    edited.follow(preview)
    long = Check(
        [" ".join(["the graph must be in single static assignment form"] * 6)], [("t", "float32 1", "float16 1")]
    )
    lines = [plain(line) for line in preview_lines(preview, long, 78, 10, UNICODE)]
    assert " ".join(" ".join(lines).split()).count("single static") == 6
    words = [line.split()[0] for line in lines[-6:]]
    assert [word for word in words if word in ("removed", "changed", "types", "affects", "weights")] == words[-5:]


def test_what_goes_and_what_changes_are_told_apart_where_names_differ_in_their_middle(tmp_path: Path) -> None:
    model = onnx.load(chain_model(tmp_path / "m.onnx", 9))
    for place, changed in enumerate(model.graph.node):
        changed.name = f"/model/{'x' * 60}/part{place}/{'y' * 60}"
    onnx.save(model, tmp_path / "long.onnx")
    edited = opened(tmp_path / "long.onnx", tmp_path)
    preview = edited.attempt(edited.words("delete", "", [4]))
    text = " ".join(" ".join(plain(line) for line in preview_lines(preview, None, 100, 99, UNICODE)).split())
    gone, changed_name = text.split("removed -1 ")[1].split()[1], text.split("changed ~1 ")[1].split(":")[0]
    assert gone != changed_name and "part5" in changed_name


def test_names_that_steer_a_terminal_are_shown_not_obeyed(tmp_path: Path) -> None:
    edited = opened(hostile_model(tmp_path / "hostile.onnx"), tmp_path)
    for place in range(3):
        nodes = [int(edited.overlay().order[place])]
        try:
            preview = edited.attempt(edited.words("delete", "", nodes))
        except LayerwiseError as error:
            assert "\x1b" not in str(error)
            continue
        for line in [*preview_lines(preview, None, 100, 99, UNICODE), *step_lines(preview, 100, UNICODE)]:
            assert not set(plain(line)) & {"\x1b", "\n", "\x9b", "\x07"}


def test_the_history_is_a_tree(edited: EditedModel) -> None:
    state = SurgeryState(Session(None))
    state.steps = [Step(0, -1, "", 0), Step(1, 0, "one", 1), Step(2, 1, "two", 2), Step(3, 0, "three", 3)]
    state.opened, state.head, state.saved = True, 3, 2
    found = branches(state)
    assert [(branch.step.id, branch.depth, branch.starts) for branch in found] == [
        (0, 0, False), (1, 1, True), (2, 1, False), (3, 0, False)
    ]  # fmt: skip
    rows = [plain(branch_row(branch, state, 70, Names(UNICODE), UNICODE)) for branch in found]
    assert rows[0].startswith("● ") and rows[1].startswith("├─○   1  one") and rows[2].startswith("│ ○   2  two")
    assert "here" in rows[3] and "saved" in rows[2] and all(cell_len(row) <= 72 for row in rows)
    assert edited_text(state) == "1 edit, not written" and state.path() == [0, 3]
    assert all(plain(branch_row(branch, state, 70, Names(ASCII), ASCII)).isascii() for branch in found)


def test_two_states_side_by_side(edited: EditedModel) -> None:
    preview = edited.attempt(edited.words("delete", "", [node(edited, RELU)]))
    edited.apply(preview)
    sides = edited.states(0, 1)
    rows = SideRows(sides)
    assert "1 only left, 1 changed" in plain(heading(sides, 100, UNICODE)[0])
    assert isinstance(rows.rows[0], Gap) and rows.next(-1, 1) is not None
    at = rows.next(-1, 1) or 0
    assert plain(side_row(sides, rows.rows[at], 100, Names(UNICODE), UNICODE)).startswith(f"- Relu          {RELU}")
    assert plain(pair_lines(sides, rows.rows[at], 90, UNICODE)[0]).startswith("only left: Relu")
    assert "reads /encoder/layer.1/Add_output_0" in plain(pair_lines(sides, rows.rows[at + 1], 90, UNICODE)[0])
    count = len(rows.rows)
    assert rows.open(0) and len(rows.rows) > count and not rows.open(at)
    assert all(width(side_row(sides, row, 80, Names(UNICODE), UNICODE)) <= 80 for row in rows.rows)


def test_whether_outputs_moved_is_said() -> None:
    row = {"name": "y", "equal": False, "largest": 0.5, "relative": 2.0, "note": ""}
    answer = {"unmoved": False, "outputs": [row], "gone": [], "new": ["z"]}
    assert effect_text(answer) == "outputs moved: y max abs 5.0e-01, max rel 2.0e+00; new: z"
    assert "bit for bit" in effect_text({"unmoved": True, "outputs": [row], "gone": [], "new": []})
    nothing = {"unmoved": False, "nothing": True, "outputs": [row | {"equal": True}], "gone": [], "new": []}
    assert "nothing was compared" in effect_text(nothing)


def test_a_log_is_read_with_what_does_not_fit(edited: EditedModel, tmp_path: Path) -> None:
    edited.apply(edited.attempt(edited.words("delete", "", [node(edited, RELU)])))
    log = tmp_path / "log.json"
    assert edited.write_log(log) == 1
    with pytest.raises(UsageError, match="there already"):
        edited.write_log(log)
    edits, misfits = edited.fitting(edited.read_log(log))
    assert not edits and [misfit.edit.describe() for misfit in misfits] == [f"delete {RELU}"]


def test_names_in_the_head_of_a_change_and_in_the_history_are_told_apart(tmp_path: Path) -> None:
    model = onnx.load(chain_model(tmp_path / "m.onnx", 9))
    names = [f"/model/{'x' * 60}/part{place}/{'y' * 60}" for place in range(9)]
    for name, changed in zip(names, model.graph.node, strict=True):
        changed.name = name
    onnx.save(model, tmp_path / "long.onnx")
    edited = opened(tmp_path / "long.onnx", tmp_path)
    preview = edited.attempt(edited.words("rename", names[4].replace("part4", "part40"), [4]))
    for cells in (60, 78, 118):
        text = "\n".join(plain(line) for line in preview_lines(preview, None, cells, 99, UNICODE))
        first, second = text.split("enter applies")[0].split("rename node")[1].split(" to ")
        assert "part4" in first and "part40" not in first and "part40" in second
    for place in (1, 2):
        edited.apply(edited.attempt(edited.words("delete", "", [place])))
    state = SurgeryState(Session(None))
    state.steps, state.opened, state.head = edited.steps(), True, 2
    shown_names = Names(UNICODE)
    rows = shown_names.told(
        lambda: [plain(branch_row(found, state, 78, shown_names, UNICODE)) for found in branches(state)]
    )
    assert "part1" in rows[1] and "part2" in rows[2]
