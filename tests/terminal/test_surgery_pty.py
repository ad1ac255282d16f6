"""Surgery in the real program on a terminal: look at a change, make it, undo it.

Keys are those of the screen; models that come out are run or compared as files.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import psutil
import pytest
from support.big_graph import chain_model
from support.edit_models import described, nested_model
from support.surgery_terminal import SIZES, apply, at_rest, change, nodes, opened
from support.terminal import Terminal, app

from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.surgery.edits import apply_all
from layerwise._tool.surgery.edits.nodes import DeleteNodes, InsertNode, ReplaceNode
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.saving.model import save
from layerwise._tool.surgery.types.incremental import settled


@pytest.fixture
def terminal(encoder: Path) -> Iterator[Terminal]:
    """The smaller of the sizes."""
    with opened(encoder, *SIZES[0]) as terminal:
        yield terminal


def test_a_change_is_seen_before_it_is_made_and_undone(surgery: Terminal) -> None:
    surgery.press("j" * 3)
    change(surgery, "ed")
    assert "delete /embeddings/LayerNorm/Sub" in surgery.text
    assert re.search(r"▌ - +3 Sub", surgery.text) and re.search(r"~ +4 Pow", surgery.text)
    assert "2 of 2 outputs" in surgery.text and "accept it" in surgery.text
    surgery.press("escape")
    at_rest(surgery, "as the file")
    assert re.search(r"▌ +3 Sub", surgery.text)
    change(surgery, "ed")
    apply(surgery, 1)
    assert not re.search(r" 3 Sub", surgery.text) and "1 edit, not written" in surgery.text
    surgery.press("u")
    at_rest(surgery, "as the file")
    surgery.press("\x12")
    surgery.wait_for("1 edit, not written")
    assert not re.search(r" 3 Sub", surgery.text)


def test_the_mode_is_in_the_title_and_the_footer_and_other_screens_keep_their_keys(terminal: Terminal) -> None:
    assert "[5 Surgery]" in terminal.text and " e edit …" in terminal.text
    terminal.press("1")
    terminal.wait_for("[1 Graph]")
    terminal.wait_for(" c consumer")
    terminal.press("c")
    terminal.wait_for(lambda text: re.search(r"▌ +1 Add", text) is not None)
    terminal.press("R")
    terminal.wait_for("[R Run]")
    terminal.press("5")
    terminal.wait_for("[5 Surgery]")


def test_every_key_makes_its_edit(encoder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    with opened(encoder) as terminal:
        terminal.press("j")
        change(terminal, "ei", "Relu", "enter", seen="insert Relu on /embeddings/Add_output_0")
        apply(terminal, 1)
        terminal.press("j")
        change(terminal, "er", "LeakyRelu alpha=0.2", "enter", seen="by LeakyRelu")
        apply(terminal, 2)
        change(terminal, "ea", "alpha=0.3", "enter", seen="set alpha=0.3")
        assert "alpha 0.2 becomes 0.3" in terminal.text
        apply(terminal, 3)
        terminal.press("en", "\x15", "rename leaky", "enter")
        terminal.wait_for("to leaky")
        apply(terminal, 4)
        change(terminal, "eo", seen="as output")
        assert "+1" in terminal.text
        apply(terminal, 5)
        terminal.press(":write ", str(out), "enter")
        terminal.wait_for("5 edits, written to out.onnx")
    model = onnx.load(out)
    leaky = next(node for node in model.graph.node if node.name == "leaky")
    assert leaky.op_type == "LeakyRelu" and leaky.input[0] == "/embeddings/Add_output_0"
    assert onnx.helper.get_node_attr_value(leaky, "alpha") == pytest.approx(0.3)
    assert leaky.output[0] in [value.name for value in model.graph.output]
    onnx.checker.check_model(model, full_check=True)


def test_again_on_other_nodes_and_on_all_marked_ones(terminal: Terminal) -> None:
    terminal.press("j")
    change(terminal, "ei", "Abs", "enter", seen="insert Abs")
    apply(terminal, 1)
    terminal.press(":goto /embeddings/LayerNorm/Sqrt", "enter")
    terminal.wait_for(lambda text: re.search(r"▌ +7 Sqrt", text) is not None)
    change(terminal, ".", seen="insert Abs on /embeddings/LayerNorm/Sqrt_")
    apply(terminal, 2)
    terminal.press(":goto 11", "enter", "v", "j", "j", "space")
    terminal.wait_for("3 marked")
    change(terminal, ".", seen="3 edits: insert Abs")
    apply(terminal, 5)
    terminal.press("u")
    terminal.wait_for(" 2 edits")
    terminal.press("\x12")
    terminal.wait_for(" 5 edits")


def test_undo_with_the_cursor_on_a_new_node(surgery: Terminal) -> None:
    surgery.press("j")
    change(surgery, "ei", "Abs", "enter", seen="insert Abs")
    apply(surgery, 1)
    assert re.search(r"▌ +1 Add", surgery.text)
    surgery.press("j")
    surgery.wait_for(lambda text: re.search(r"▌ \+ +411 Abs", text) is not None)
    surgery.press("u")
    at_rest(surgery, "as the file")
    assert re.search(r"▌ +2 ReduceMean", surgery.text)
    change(surgery, "ed", seen="delete /embeddings/LayerNorm/ReduceMean")


def test_any_other_edit_is_picked_and_typed(surgery: Terminal) -> None:
    surgery.press("ee", "bypass", "enter")
    surgery.wait_for(":edit bypass")
    change(surgery, "ops=Tanh", "enter", seen="bypass all Tanh")
    assert "-1  Tanh /pooler/activation/Tanh" in surgery.text
    apply(surgery, 1)


def test_what_does_not_fit_is_said_and_nothing_changes(surgery: Terminal) -> None:
    for keys, told in (
        (("ea", "nothing", "enter"), "write NAME=VALUE"),
        ((":delete /no/such", "enter"), "there is no node /no/such"),
        ((":rename /embeddings/Add", "enter"), "has that name already"),
        ((":edit nothing", "enter"), "kinds of edits"),
        (("u",), "nothing to undo"),
        ((":replay /no/such.json", "enter"), "No such file"),
    ):
        surgery.press(*keys)
        surgery.wait_for(told)
        at_rest(surgery, "as the file")


def test_an_edit_by_name_is_shown_while_the_filter_leaves_no_row(terminal: Terminal) -> None:
    terminal.press("/", "nosuch", "enter")
    terminal.wait_for(" 0 of ")
    change(terminal, ":delete /embeddings/LayerNorm/Sub", "enter", seen="-1  Sub /embeddings/LayerNorm/Sub")
    assert "2 of 2 outputs" in terminal.text and " 0 of " in terminal.text
    terminal.press("escape")
    at_rest(terminal, "as the file")


def test_a_broken_result_is_said_and_can_be_kept(surgery: Terminal) -> None:
    change(surgery, "ed", seen="delete /embeddings/word/Gather")
    assert "broken:" in surgery.text
    apply(surgery, 1)


def test_names_are_completed(surgery: Terminal) -> None:
    surgery.press("ei", "LayerN", "tab")
    surgery.wait_for(":insert LayerNormalization")
    surgery.press("\x15", "insert Add with classifier", "tab")
    surgery.wait_for(":insert Add with /classifier/MatMul_output_0")
    surgery.press("\x15", "delete /pooler/act", "tab")
    surgery.wait_for(":delete /pooler/activation/Tanh")
    surgery.press("\x15", "edit set-b", "tab")
    surgery.wait_for(":edit set-batch")
    surgery.press("escape")


def test_equal_layers_fold_to_one_row_that_opens(terminal: Terminal) -> None:
    terminal.press("z")
    terminal.wait_for(lambda text: re.search(r"11 ×8 +/encoder/layer.0 … 7", text) is not None)
    terminal.press("j" * 11)
    terminal.until_silent()
    terminal.press("enter")
    terminal.wait_for(
        lambda text: all(f" {layer + 1}              /encoder/layer.{layer} " in text for layer in range(5))
    )
    terminal.press("j" * 4, "enter")
    terminal.wait_for(lambda text: re.search(r"158 MatMul", text) is not None)
    terminal.press("j", "j")
    change(terminal, "ed", seen="delete /encoder/layer.3/")
    terminal.wait_for(lambda text: re.search(r"▌ - +159 ", text) is not None)
    apply(terminal, 1)
    terminal.press("g")
    terminal.wait_for(lambda text: re.search(r"×3 +/encoder/layer.0 … 2", text) is not None)


def test_folding_constants_and_precision_by_the_worker(encoder: Path) -> None:
    with opened(encoder, fresh=True) as terminal:
        terminal.press("j" * 3)
        change(terminal, "ep", "f", seen="in float16")
        terminal.wait_for("+3  Cast")
        apply(terminal, 1)
        change(terminal, "ef", seen="fold constants")
        apply(terminal, 2)
        maps = {Path(entry.path).name for entry in psutil.Process(terminal.process.pid).memory_maps()}
        assert not [name for name in maps if "onnxruntime" in name]
        terminal.press("et")
        terminal.wait_for("moved: ", 40)
        assert "computes FP16 in FP32" in terminal.text


def test_bodies_and_functions_are_edited_by_keys(tmp_path: Path) -> None:
    out, model = tmp_path / "out.onnx", nested_model(tmp_path / "nested.onnx")
    with app(model, columns=80, rows=24) as terminal:
        terminal.wait_for("then_relu")
        terminal.press("x")
        terminal.wait_for("as the file")
        terminal.press(":goto then_relu", "enter")
        change(terminal, "ed", seen="delete then_relu in if/then_branch")
        assert re.search(r"▌ - +11 ", terminal.text) and re.search(r"~ +9 If", terminal.text)
        assert "2 of 3 outputs  y, looped" in terminal.text
        apply(terminal, 1)
        terminal.press(":goto twice_add", "enter")
        change(terminal, "ei", "Neg", "enter", seen="insert Neg on d in function/my:Twice")
        assert "1 of 3 outputs  z" in terminal.text
        apply(terminal, 2)
        terminal.press("eo")
        terminal.wait_for("only tensors of the main graph")
        terminal.press(":goto then_tanh", "enter")
        change(terminal, "er", "Sigmoid", "enter", seen="in loop/body/inner/then_branch")
        apply(terminal, 3)
        change(terminal, "ea", "alpha=1", "enter", seen="set alpha=1")
        assert "broken:" in terminal.text
        terminal.press("escape")
        at_rest(terminal, "3 edits")
        terminal.press(f":write {out}", "enter")
        terminal.wait_for("written to out.onnx")
        terminal.press("u", "u", "u")
        at_rest(terminal, "as the file")
        terminal.press(":goto then_relu", "enter")
        terminal.wait_for(lambda text: re.search(r"▌ +11 +Relu +then_relu", text) is not None)
    made = [
        DeleteNodes(nodes=("then_relu",), scope=("if", "then_branch")),
        InsertNode(tensor="d", op="Neg", scope=("function", "my:Twice")),
        ReplaceNode(node="then_tanh", op="Sigmoid", scope=("loop", "body", "inner", "then_branch")),
    ]
    with ModelFile(model) as file:
        base = Structure.open(file)
        save(settled(base, apply_all(base, made)), tmp_path / "wanted.onnx")
    assert described(onnx.load(out)) == described(onnx.load(tmp_path / "wanted.onnx"))


def test_extracting_a_part_that_runs(surgery: Terminal, tmp_path: Path) -> None:
    from layerwise._tool.backends.onnxrt.runner import open_onnxrt
    from layerwise._tool.backends.runner import Loadable
    from layerwise._tool.backends.specs import RunnerSpec

    out = tmp_path / "part.onnx"
    surgery.press(":goto /pooler/activation/Tanh", "enter")
    change(surgery, "ex", "f", seen="2 edits: set outputs to logits")
    apply(surgery, 2)
    surgery.press(f":write {out}", "enter")
    surgery.wait_for("written to part.onnx")
    assert [op for op, _ in nodes(out)] == ["MatMul", "Add", "Identity"]
    feed = {"/pooler/activation/Tanh_output_0": np.ones((1, 128), np.float32)}
    part = Loadable(data=out.read_bytes(), folder=tmp_path)
    with open_onnxrt(RunnerSpec(kind="onnxrt"), part, name="part") as runner:
        assert runner.infer(feed).outputs["logits"].shape == (1, 8)


def test_a_cursor_move_costs_at_most_500_bytes_and_idle_nothing(tmp_path: Path) -> None:
    with opened(chain_model(tmp_path / "chain.onnx", 20_000)) as terminal:
        terminal.cost("+")
        assert median(terminal.cost("j") for _ in range(12)) <= 500
        change(terminal, "ed")
        terminal.until_silent()
        assert median(terminal.cost("j") for _ in range(9)) <= 500
        assert terminal.is_idle(1.5)
        terminal.press("enter")
        terminal.wait_for("1 edit, not written")
        assert terminal.is_idle(1.5)
