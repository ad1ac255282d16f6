"""The modules of nodes in the app: on Errors, on Graph, and the line of Python in an editor."""

import asyncio
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.bench import Bench, compare_spec, with_bench
from support.exported import noted_pair

from layerwise._tool.surgery.origin.origin import SourceLine
from layerwise._tool.tui.controllers.opening import WarmWorker
from layerwise._tool.tui.screens.errors_page import ErrorsScreen
from layerwise._tool.tui.screens.graph import GraphScreen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("modules")


@pytest.fixture(scope="module")
def pair(folder: Path) -> tuple[Path, Path]:
    source = folder / "net.py"
    source.write_text("pass\n")
    return noted_pair(folder, str(source))


def test_rows_roll_up_per_module_and_open(pair: tuple[Path, Path], tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        errors = bench.app.state.errors
        await bench.compare(compare_spec(pair[1], pair[0]))
        row = next(row for place in range(len(errors.table)) if (row := errors.table.row(place)).tensor == "mm_1")
        assert row.module == ("block.1", "proj")
        assert row.source == SourceLine(str(pair[0].parent / "net.py"), 12, "forward")
        await bench.press("2")
        await bench.see("module", "block.0.proj")
        page = bench.app.query_one(ErrorsScreen)
        await bench.press("m")
        await bench.see("module or tensor: rel-L2", "▸ block.0", "▸ block.1", "4 failed")
        assert (errors.lines(), errors.place(0)) == (2, -1)
        good, bad = errors.rollup(0), errors.rollup(1)
        assert (good.rows, good.failed, good.high) == (3, 0, 0.0)
        assert (bad.rows, bad.failed) == (4, 4) and 0 < bad.low <= bad.middle <= bad.high
        await bench.press("d")
        await bench.see("this row is a module")
        await bench.press("f")
        assert errors.table.tensors[errors.place(page.table.list.cursor)] == "mm_1"
        await bench.see("▾ proj", "mm_1")
        await bench.press("Z")
        assert errors.head(page.table.list.cursor) is not None
        page.table.filter_line("module==block.1.proj")
        assert sorted(errors.table.tensors[place] for place in errors.order.tolist()) == ["add_1", "mm_1"]
        page.table.filter_line("not module:proj.")
        assert {errors.table.tensors[place] for place in errors.order.tolist()} == {"tanh_0", "tanh_1", "y"}
        page.table.filter_line("")
        await bench.press("m")
        assert errors.lines() == 7
        page.export(str(tmp_path / "rows.json"))
        assert json.loads((tmp_path / "rows.json").read_text())[3]["module"] == ["block.1", "proj"]

    with_bench(pair[1], story)


def test_nodes_stand_below_their_modules(pair: tuple[Path, Path]) -> None:
    async def story(bench: Bench) -> None:
        index = bench.app.state.session.index
        assert index is not None
        await bench.until(lambda: index.modules() is not None)
        rows = bench.app.query_one(GraphScreen).view.rows
        await bench.press("m")
        await bench.see("▸ block.0", "3 nodes", "▸ block.1", "4 nodes")
        await bench.press("enter")
        await bench.see("▾ block.0", "▸ proj", "node_tanh_0", "module block.0")
        assert (len(rows), rows.nodes_at(1)) == (4, [0, 1])
        bench.app.state.session.select_node(4)
        await bench.see("node_add_1", "line ", "net.py:12 in forward")
        await bench.press("z")
        assert not rows.by_module
        await bench.press("slash", *"module:1.proj.", "enter")
        await bench.see("2 of 7")

    with_bench(pair[0], story)


def test_who_folds_before_the_modules_are_read_is_told_so_and_sees_them_then(
    pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = asyncio.Event()
    ask = WarmWorker.ask

    async def late(self: WarmWorker, request: str, params: dict[str, Any]) -> dict[str, Any]:
        if request == "modules":
            await read.wait()
        return await ask(self, request, params)

    monkeypatch.setattr(WarmWorker, "ask", late)
    model, edited = pair[0].with_name("late.onnx"), onnx.load(pair[0])
    edited.producer_name = "nobody has read this one"
    onnx.save(edited, model)

    async def story(bench: Bench) -> None:
        await bench.press("m")
        await bench.see("the modules are being read")
        read.set()
        await bench.see("▸ block.0", "3 nodes")

    with_bench(model, story)


def test_the_line_opens_in_the_users_editor_when_that_is_confirmed(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/words\n')
    editor.chmod(0o700)
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{editor} -x")

    async def story(bench: Bench) -> None:
        monkeypatch.setattr(bench.app, "suspend", nullcontext)
        index = bench.app.state.session.index
        await bench.until(lambda: index is not None and index.modules() is not None)
        await bench.press("O")
        await bench.see("enter opens it with", "net.py:12 in forward")
        assert not (tmp_path / "words").exists()
        await bench.press("enter")
        await bench.until((tmp_path / "words").exists)
        assert (tmp_path / "words").read_text().split("\n")[:3] == ["-x", "+12", str(pair[0].parent / "net.py")]
        bench.app.state.session.select_node(6)
        await bench.press("O")
        await bench.see("no line of Python is known")

    with_bench(pair[0], story)
