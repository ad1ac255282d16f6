"""The Errors screen over real comparisons."""

import json
import os
from pathlib import Path

import onnx
import pytest
from support.bench import BAD_LAYER, Bench, chain_pair, compare_spec, with_bench
from support.jobs import waiting_pair

from layerwise._tool.surgery.precision.nodes import emulate_precision
from layerwise._tool.tui.screens.errors_page import ErrorsScreen
from layerwise._tool.tui.state.error_table import FAILED


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return chain_pair(tmp_path_factory.mktemp("models"))


def page(bench: Bench) -> ErrorsScreen:
    return bench.app.query_one(ErrorsScreen)


def cursor_tensor(bench: Bench) -> str:
    errors = bench.app.state.errors
    return errors.table.tensors[errors.place(page(bench).main_widget().cursor)]  # type: ignore[union-attr]


def test_from_the_table_to_the_first_bad_layer_its_values_and_its_node(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        state = bench.app.state
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("2")
        await bench.see(
            "onnxruntime cpu  against  onnxruntime cpu, chain.onnx", "done: 40 rows", "/layer.0/MatMul", "needs atol"
        )
        assert state.errors.counts()[0] == 40 - 2 * BAD_LAYER
        await bench.press("f")
        assert cursor_tensor(bench) == f"/layer.{BAD_LAYER}/MatMul_output_0"
        await bench.see(f"/layer.{BAD_LAYER}/MatMul_output_0", "needs atol")
        await bench.press("enter")
        await bench.see("worst elements", "powers of ten")
        await bench.press("escape", "o")
        await bench.see("[1 Graph]")
        assert state.session.index is not None
        assert state.session.index.node_name(state.session.node) == f"/layer.{BAD_LAYER}/MatMul"
        assert state.session.errors[state.session.node].passed is False
        await bench.press("2")
        await bench.see("[2 Errors]")
        assert cursor_tensor(bench) == f"/layer.{BAD_LAYER}/MatMul_output_0"

    with_bench(pair[1], story)


def test_a_graph_that_is_read_after_the_last_row_shows_the_errors(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        session = bench.app.state.session
        index, session.index = session.index, None
        assert index is not None
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("2")
        await bench.see("done: 40 rows")
        assert not session.errors
        session.set_index(index)
        assert session.errors[index.find_node(f"/layer.{BAD_LAYER}/MatMul")].passed is False
        assert len(session.errors) == 40

    with_bench(pair[1], story)


def test_files_are_found_from_where_the_app_was_started(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pair[0].parent)

    async def story(bench: Bench) -> None:
        state = bench.app.state
        await bench.until(lambda: waiting_pair(state.workspace))
        await bench.compare(compare_spec(Path("wrong.onnx"), Path("chain.onnx")))
        await bench.press("2")
        await bench.see("done: 40 rows")
        os.chdir("/")
        await bench.press("f", "enter")
        await bench.see("worst elements")

    with_bench(pair[1], story, forked=False)


@pytest.mark.parametrize(("named", "opened"), [(True, "MatMul"), (False, "Cast")])
def test_of_a_precision_round_trip_the_operator_opens_and_without_one_of_its_name_the_cast(
    pair: tuple[Path, Path], tmp_path: Path, named: bool, opened: str
) -> None:
    rounded = emulate_precision(onnx.load(pair[0]), "float16")
    for node in rounded.graph.node if not named else ():
        node.name = ""
    onnx.save(rounded, tmp_path / "rounded.onnx")

    async def story(bench: Bench) -> None:
        state = bench.app.state
        await bench.compare(compare_spec(tmp_path / "rounded.onnx", pair[0]))
        await bench.press("2", "colon", *"filter /layer.3/MatMul", "enter")
        await bench.see("1 of 40", "op MatMul")
        await bench.press("o")
        await bench.see("[1 Graph]")
        index, node = state.session.index, state.session.node
        assert index is not None and index.node_op(node) == opened
        assert list(state.session.errors).count(node) == 1
        tensors = [index.tensor_name(tensor) for tensor in index.node_outputs(node)]
        assert [name.removesuffix("__exact") for name in tensors] == ["/layer.3/MatMul_output_0"]

    with_bench(tmp_path / "rounded.onnx", story)


def test_filter_as_you_type_sort_and_leaps(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        errors = bench.app.state.errors
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("2")
        await bench.see("done: 40 rows")
        await bench.press("slash", *"op:matmul failed")
        await bench.until(lambda: len(errors.order) == 20 - BAD_LAYER)
        await bench.see(f"{20 - BAD_LAYER} of 40")
        await bench.press(*" and err>")
        await bench.see("err > needs a value")
        await bench.press("escape")
        await bench.until(lambda: len(errors.order) == 40)
        await bench.press("s")
        assert errors.sort == "max_abs" and errors.table.verdicts()[errors.place(0)] == FAILED
        await bench.see("max-abs▾")
        await bench.press("S")
        assert errors.table.verdicts()[errors.place(0)] != FAILED
        await bench.press("S", "f")
        assert cursor_tensor(bench) == f"/layer.{BAD_LAYER}/MatMul_output_0"
        await bench.press("g", "right_square_bracket")
        await bench.see("]   e next leap, overflow or NaN")
        assert page(bench).main_widget().cursor == 0
        await bench.press("e")
        assert cursor_tensor(bench) == f"/layer.{BAD_LAYER}/MatMul_output_0"
        assert "]   e" not in bench.text
        await bench.press("right_square_bracket", "escape", "right_square_bracket", "j", "left_square_bracket", "e")
        assert cursor_tensor(bench) == f"/layer.{BAD_LAYER}/MatMul_output_0"
        await bench.press("question_mark", *"leap")
        await bench.see("]e", "[e", "leap before this one")
        await bench.press("escape")
        await bench.press("C")
        await bench.see("what the columns mean".capitalize(), "hands it on")
        await bench.press("escape")
        await bench.press(*":sort op", "enter")
        await bench.until(lambda: errors.sort == "op")

    with_bench(pair[1], story, size=(80, 24))


def test_rows_leave_as_text_json_and_by_the_clipboard(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def story(bench: Bench) -> None:
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("2")
        await bench.see("done: 40 rows")
        for name in ("rows.json", "rows.txt"):
            await bench.press("colon", *f"export {name}", "enter")
            await bench.until(lambda name=name: (tmp_path / name).exists())
        rows = json.loads((tmp_path / "rows.json").read_text())
        assert [row["i"] for row in rows] == list(range(40))
        assert "/layer.19/MatMul" in (tmp_path / "rows.txt").read_text()
        await bench.press("f", "y")
        await bench.see("tensor", "row as JSON", "command")
        await bench.press("c")
        yanked = bench.app.state.workspace.root / "yank.txt"
        await bench.until(yanked.exists)
        assert yanked.read_text().startswith("layerwise run ") and "--reference-model" in yanked.read_text()

    with_bench(pair[1], story)


def test_a_comparison_that_fails_says_why(pair: tuple[Path, Path], tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        broken = tmp_path / "broken.onnx"
        broken.write_bytes(b"no model")
        await bench.compare(compare_spec(pair[1], broken))
        await bench.press("2")
        await bench.see("failed", "broken.onnx")

    with_bench(pair[1], story)


def test_a_page_that_was_hidden_shows_what_came_meanwhile(pair: tuple[Path, Path], tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        broken = tmp_path / "broken.onnx"
        broken.write_bytes(b"no model")
        bad, good = [await bench.compare(compare_spec(pair[1], other)) for other in (broken, pair[0])]
        await bench.press("2")
        shown = f"/layer.{BAD_LAYER + 1}/MatMul"  # below the cursor: the rows above may have been scrolled past
        await bench.see("done: 40 rows", shown)
        for job, seen in ((bad, ["failed: 0 rows", "broken.onnx"]), (good, ["done: 40 rows", shown])):
            await bench.press("3")
            await bench.until(lambda: all(bench.app.state.jobs.index_of(each) >= 0 for each in (bad, good)))
            await bench.press("g", *"j" * bench.app.state.jobs.index_of(job), "enter")
            await bench.see("[2 Errors]", *seen)

    with_bench(pair[1], story)


def test_rows_of_another_model_carry_its_name_and_colour_no_node(pair: tuple[Path, Path], tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    other.write_bytes(pair[0].read_bytes())

    async def story(bench: Bench) -> None:
        await bench.compare(compare_spec(pair[1], pair[0]))
        await bench.press("2")
        await bench.see(f"{pair[1].name}: onnxruntime cpu  against", "done: 40 rows")
        assert not bench.app.state.session.errors

    with_bench(other, story)


def test_a_filter_without_a_comparison_does_not_say_that_no_row_fits(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("2", "slash", *"Tanh", "enter")
        await bench.see("no comparison yet", "/ Tanh")
        assert "0 of 0" not in bench.text and "no row fits" not in bench.text

    with_bench(pair[0], story, size=(80, 24))
