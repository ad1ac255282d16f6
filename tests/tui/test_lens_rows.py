"""A lens on the Debug screen: its rows, worst first, what is predicted as nodes are toggled, and the proof."""

from pathlib import Path
from typing import Any

import msgspec
from support.bench import Bench, chain_pair, compare_spec, with_bench

from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.search.lens.rows import EffectRow, KeptRow, LensResult, OutputEffect
from layerwise._tool.debugtools.search.lens.spec import LensSpec, Rounding
from layerwise._tool.tui.presenters.debug_list import head_lines, heading, row_detail, row_line
from layerwise._tool.tui.presenters.effects import lens_text
from layerwise._tool.tui.presenters.errors_page import heading as errors_heading
from layerwise._tool.tui.presenters.errors_page import row_line as errors_line
from layerwise._tool.tui.presenters.errors_page import table_columns
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, plain, width
from layerwise._tool.tui.state.debugging import DebugState
from layerwise._tool.tui.state.errors_page import ErrorsState

SPEC = LensSpec(compare=CompareSpec(model="net.onnx"), rounding=Rounding(to="fp8e4m3"))


def effect(i: int, error: float | None) -> dict[str, Any]:
    row = EffectRow(i=i, node=f"n{i}\x1b[31m", op="MatMul", effect=error, own=0.1, cost=10.0, clipped=0.01,
                    clipping=0.5, effects=[OutputEffect("y", error)])  # fmt: skip
    return {"type": "row", "table": "effects", "row": msgspec.to_builtins(row)}


def lens() -> DebugState:
    state = DebugState()
    state.open(3, "debug_lens", msgspec.to_builtins(SPEC))
    for event in (effect(1, 0.003), effect(7, None), effect(5, 0.004), effect(1, 0.003)):
        state.take(event)
    return state


def test_rows_stand_worst_first_and_the_prediction_follows_what_is_toggled() -> None:
    state = lens()
    assert [row.i for row in state.rows if isinstance(row, EffectRow)] == [7, 5, 1]
    assert state.toggle(state.row_at(0))
    assert state.predicted() == (0.005, 1 / 3)
    state.toggle(state.row_at(1))
    assert state.predicted()[0] == 0.003
    glyphs = UNICODE
    head = "\n".join(plain(line) for line in head_lines(state, [], 100, glyphs, 0.0))
    assert "2 of 3 in FP32, predicted error 0.003" in head and "net.onnx in fp8e4m3" in head
    line = plain(row_line(state.row_at(0), 100, Names(glyphs), glyphs, kept=True))
    assert "FP32" in line and "not fin." in line and "\x1b" not in line
    assert plain(heading("lens", 100)).split()[:3] == ["#", "op", "in"]
    assert any("1.000% of the values, 50%" in plain(line) for line in row_detail(state.row_at(1), 100))
    state.take({"type": "result", "data": msgspec.to_builtins(LensResult(kept=[KeptRow(5, "n5", "MatMul")]))})
    assert state.in_fp32 == {5}


def test_the_nodes_are_a_band_along_the_graph() -> None:
    """In the order of the graph: the higher the larger the effect; FP32 and the cursor have signs of their own."""
    state = DebugState()
    state.open(3, "debug_lens", msgspec.to_builtins(SPEC))
    for event in (effect(1, 1e-5), effect(7, None), effect(5, 0.004)):
        state.take(event)
    for glyphs, full, stays, edge in ((UNICODE, "█", "▒", "│"), (ASCII, "#", "F", "|")):
        state.in_fp32 = set()
        (band,) = [plain(line) for line in head_lines(state, [], 70, glyphs, 0.0) if plain(line).startswith("graph")]
        cells = band.partition(edge)[2].rpartition(edge)[0]
        assert cells.startswith(glyphs.bars[1]) and cells.endswith(full)
        state.in_fp32 = {1}
        (band,) = [
            plain(line) for line in head_lines(state, [], 70, glyphs, 0.0, here=5) if plain(line).startswith("graph")
        ]
        cells = band.partition(edge)[2].rpartition(edge)[0]
        assert cells.startswith(stays) and glyphs.mark in cells and cells.endswith(full)
    assert all(width(line) <= 40 for line in head_lines(state, [], 40, UNICODE, 0.0))


def test_effects_and_gains_are_columns_of_the_errors() -> None:
    state = ErrorsState()
    for i, tensor in enumerate("abc"):
        state.table.add(LayerRow(i=i, tensor=tensor, node=f"n{i}", op="MatMul", rel_l2=0.1, passed=True))
    assert "effect" not in state.sorts_shown()
    state.effects.begin(3, "int8")
    for i, (tensor, error) in enumerate((("a", 0.003), ("b", 0.004))):
        outputs = [OutputEffect("y", error)]
        state.effects.take(EffectRow(i=i, node=f"n{i}", op="MatMul", outputs=[tensor], effect=error, effects=outputs))
    state.sort = "effect"
    state.refresh(always=True)
    assert [state.table.tensors[place] for place in state.order] == ["b", "a", "c"]
    shape = table_columns(state.table, 140, "effect")
    names = plain(errors_heading(shape, 140, "effect", False, UNICODE))
    row = plain(errors_line(state.table, 1, shape, Names(UNICODE), UNICODE))
    assert "effect" in names and "gain" in names and "4.0e-03" in row and " 40%" in row
    told = lens_text(*(state.effects.of("a") or (EffectRow(i=0, node="", op=""), 0.0)), "int8")
    assert "int8 alone here moves the worst output by 3.0e-03" in told and "takes 20% off" in told


def test_a_key_keeps_a_node_and_another_proves_it(tmp_path: Path) -> None:
    model, other = chain_pair(tmp_path)

    async def story(bench: Bench) -> None:
        debug = bench.app.state.debug
        await bench.compare(compare_spec(model, other))
        await bench.press("4", "colon", *("space" if key == " " else key for key in "lens xyz"), "enter")
        await bench.see("no format xyz; formats: fp16")
        await bench.press("colon", *"lens", "enter")
        await bench.until(lambda: debug.search == "lens" and debug.state == "done")
        await bench.see("int8")
        await bench.see("in FP32, predicted error", "With all")
        before = debug.predicted()[0]
        await bench.press("g", "space")
        assert len(debug.in_fp32) == 1 and debug.predicted()[0] < before
        await bench.see("1 of")
        await bench.press("exclamation_mark")
        await bench.see("measured ", ", as a mixed model ")
        await bench.press("2")
        await bench.see("max-abs", "effect", "gain")

    with_bench(model, story, size=(140, 30))  # the message goes with its job; the head that stays needs the room
