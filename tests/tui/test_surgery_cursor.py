"""The cursor of Surgery stays on its node; marks from before do not outrank it; `.` and W."""

from pathlib import Path

import onnx
import pytest
from support.bench import Bench, chain_pair, with_bench
from support.surgery_walk import MODELS, Plain, walk


@pytest.mark.parametrize(("model", "seed"), [(0, 3), (1, 5)])
def test_the_cursor_is_where_a_plain_model_says(model: int, seed: int, tmp_path: Path) -> None:
    walk(MODELS[model](tmp_path), seed, 24, tmp_path / "home")


def test_a_node_that_is_gone_gives_the_cursor_to_the_next() -> None:
    plain = Plain([1, 2, 3, 4], 3)
    plain.take([1, 2, 4])
    assert plain.node == 4
    plain.take([1, 2])
    assert plain.node == 2


def test_marks_from_before_ask_and_a_change_that_was_left_is_not_repeated(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        surgery = bench.app.state.surgery

        def touched() -> set[str]:
            assert surgery.preview is not None
            return {name for edit in surgery.preview.edits for name in edit.nodes}

        await bench.press("space", "j", "space", "j", "j", "x", "e", "d")
        await bench.see("2 nodes were marked before", "/layer.1/Tanh", "2 marked nodes")
        await bench.press("enter")
        assert touched() == {"/layer.1/Tanh"} and not surgery.session.marks
        await bench.press("escape", "full_stop")
        await bench.see("nothing was edited yet")
        await bench.press("e", "d", "enter", "j", "j", "full_stop")
        assert touched() == {"/layer.3/MatMul"}
        await bench.press("escape", "1", "x", "j", "space", "j", "j", "e", "d")
        await bench.see("3 marked nodes" if len(surgery.session.marks) == 3 else "nodes")
        assert len(touched()) == len(surgery.session.marks) > 1
        await bench.pilot.resize_terminal(80, 24)
        await bench.press("escape", "e", "e")
        await bench.see('some operators ("Op" or', '"domain:Op"), in bodies too')  # what is too long goes on below

    with_bench(chain_pair(tmp_path)[0], story)


def test_writing_what_the_checkers_refuse_asks(tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"

    async def story(bench: Bench) -> None:
        await bench.press("x", "e", "r", *"MatMul", "enter", "enter")
        await bench.press("j", "e", "r", *"MatMul", "enter", "enter")
        await bench.press("W", *str(out), "enter")
        await bench.see("The checkers refuse the edited model", "do not write it")
        await bench.press("enter")
        assert not out.exists()
        await bench.press("W", *str(out), "enter", "y")
        await bench.see("written")
        assert onnx.load(out).graph.node[1].op_type == "MatMul"

    with_bench(chain_pair(tmp_path)[0], story)


def test_a_node_of_the_change_on_view_is_not_edited(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        surgery = bench.app.state.surgery
        await bench.press("x", "j", "e", "i", *"Relu", "enter")
        preview = surgery.preview
        assert preview is not None
        added = next(node for node in preview.nodes() if preview.signs[node] == "+")
        await bench.press("j")
        assert surgery.session.node == added
        await bench.press("e", "n", "ctrl+u", *"rename n7", "enter")
        await bench.see("in the change on view only")
        assert surgery.preview is preview and surgery.session.node == added

    with_bench(chain_pair(tmp_path)[0], story)


def test_a_number_that_the_edited_graph_lacks_leads_nowhere_and_a_hidden_list_follows_its_node(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        surgery = bench.app.state.surgery
        await bench.press("x", "j", "j", "e", "d", "enter", "colon", *"goto 2", "enter")
        await bench.see("no node or tensor 2")
        assert surgery.session.node == 3
        await bench.press("1")
        rows = bench.app.page.main_list
        await bench.press("2")
        bench.app.state.session.select_node(39)
        assert rows.top <= 39 < rows.top + rows.height

    with_bench(chain_pair(tmp_path)[0], story, (80, 24))


def test_an_edit_of_a_model_whose_file_is_gone_says_so(tmp_path: Path) -> None:
    model, _ = chain_pair(tmp_path)

    async def story(bench: Bench) -> None:
        model.unlink()
        await bench.press("5", "e", "d")
        await bench.see("[5 Surgery]", "No such file")
        assert "not open yet" not in bench.app.state.messages.newest_first()[0].text

    with_bench(model, story, (80, 24))
