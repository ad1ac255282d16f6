"""A count before a move, as in vim; and that digits keep changing screens unless the user says otherwise."""

from pathlib import Path

import pytest
from support.bench import Bench, with_bench
from support.big_graph import chain_model

from layerwise._tool.tui.keys import PRESETS, put_in_force
from layerwise._tool.tui.screens.graph import GraphScreen


def test_a_count_moves_so_far_and_is_seen_and_given_up(tmp_path: Path) -> None:
    model = chain_model(tmp_path / "m.onnx", 400)

    async def story(bench: Bench) -> None:
        rows = bench.app.query_one(GraphScreen).main_list

        async def at(row: int, *keys: str) -> None:
            await bench.press(*keys)
            assert rows.cursor == row, bench.text

        await bench.press("number_sign", "1", "2")
        await bench.see("count 12_")
        await at(12, "j")
        assert "count" not in bench.text
        await at(9, "number_sign", "3", "k")
        await at(9, "number_sign", "5", "escape")
        await at(10, "j")
        await at(15, "number_sign", "9", "backspace", "5", "j")
        await at(40, "number_sign", "4", "0", "G")
        assert bench.app.state.session.node == 40 and "[1 Graph]" in bench.text
        await at(40, "number_sign", "4", "space")
        assert len(bench.app.state.session.marks) == 1
        page = max(1, rows.rows_kept // 2)
        await at(40 + 3 * page, "number_sign", "3", "ctrl+d")
        await at(rows.cursor, "number_sign", "j", "k")
        await at(399, "number_sign", *"9999997", "j")
        assert "[1 Graph]" in bench.text
        await bench.press("number_sign", *"9999999", "k")
        await bench.press("5")
        await bench.see("[5 Surgery]")

    with_bench(model, story, (80, 24))


def test_every_page_has_a_list_that_a_count_moves_in(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        for name in bench.app.page_names():
            await bench.app.show_page(name)
            await bench.press("colon", "+", "5", "enter", "colon", "2", "enter")
            assert name == bench.app.page.SCOPE and not bench.app.screen.is_modal

    with_bench(chain_model(tmp_path / "m.onnx", 3), story, (80, 24))


def test_the_preset_counts_gives_digits_to_counts_and_screens_to_function_keys(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = chain_model(tmp_path / "m.onnx", 60)
    config = tmp_path / "config" / "layerwise" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('preset = "counts"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    async def story(bench: Bench) -> None:
        await bench.press(*"20", "j")
        assert bench.app.query_one(GraphScreen).main_list.cursor == 20 and "[1 Graph]" in bench.text
        await bench.press("f2")
        await bench.see("[2 Errors]")
        await bench.press("0")
        await bench.see("Open what?")
        await bench.press("slash", *"4", "escape", "f1")
        await bench.see("[1 Graph]")

    try:
        with_bench(model, story, (80, 24))
    finally:
        put_in_force({})
    assert "counts" in PRESETS
