"""The Matrix screen at 80 columns: the grid, its cursor, what changed, and the way from a cell to its job."""

import re
from pathlib import Path

import msgspec
import pytest
from support.bench import Bench, with_bench
from support.jobs import ended_job

from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools.matrix.rows import CellRow, Change, MatrixResult, Receipt, StartRow
from layerwise._tool.debugtools.matrix.spec import CellSpec, MatrixSpec
from layerwise._tool.tui.presenters.matrix import head_lines, heading, row_line
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import UNICODE
from layerwise._tool.tui.state.matrix_page import MatrixState

MODELS, SIDES = ("bert", "\x1b[31mresnet-with-a-name-that-is-longer-than-its-column"), ("cpu", "half", "gpu")
VERDICTS = ("passed", "failed", "error", "passed")


def ended_matrix(workspace: Workspace, job: int) -> int:
    """A matrix of six cells: four ended, one running, one waiting; the second has changed."""
    cells = [CellSpec(model=model, side=side, feed="real", action="run", job=JobSpec(action="compare", command=[model]))
             for model in MODELS for side in SIDES]  # fmt: skip
    receipts = [
        Receipt(key="k" * 32, verdict=verdict, job=job, text=f"this one {verdict}", locate=job) for verdict in VERDICTS
    ]
    rows = [CellRow(number=number, model=cell.model, side=cell.side, feed="real", action="run", receipt=receipt)
            for number, (cell, receipt) in enumerate(zip(cells, receipts, strict=False))]  # fmt: skip
    change = Change(model="bert", side="half", feed="real", action="run", was="passed", now="failed", why=["the model"])
    result = MatrixResult(name="nightly", changes=[change], conclusion="2 of 6 cells passed")
    spec = MatrixSpec(name="nightly", file="/nightly.toml", cells=cells)
    return ended_job(
        workspace, JobSpec(action="matrix", params=msgspec.to_builtins(spec)),
        *(("row", {"table": "cells", "row": row}) for row in rows),
        ("row", {"table": "started", "row": StartRow(4, job)}), ("result", {"data": msgspec.to_builtins(result)}),
    )  # fmt: skip


def test_the_grid_says_what_became_of_each_cell_and_opens_its_job() -> None:
    async def story(bench: Bench) -> None:
        workspace = bench.app.state.workspace
        await bench.press("7")
        await bench.see("[7 Matrix]", "no matrix in this workspace yet")
        job = ended_job(workspace, JobSpec(action="lint", title="a lint"))
        ended_matrix(workspace, job)
        await bench.see("nightly", "2 of 6 cells passed", "[passed]", "failed*", "error", "running", "waits")
        assert "\x1b" not in bench.text and "\\x1b[31m" in bench.text
        await bench.press("n")
        await bench.see("bert × half × real", "[failed*]", "was passed, now failed: the model")
        await bench.press("n", "l", "right")
        await bench.see("bert × gpu × real", "this one error", "[error]")
        await bench.press("j", "h")
        await bench.see("[running]")
        await bench.press("h", "h", "N")
        await bench.see("[error]")
        await bench.press("enter")
        await bench.see("[3 Jobs]", f"job {job} has no screen of its own", "a lint")

    with_bench(None, story, size=(80, 24))


def long_matrix(workspace: Workspace, models: int) -> None:
    """A matrix of failed cells, one for each model, each with all that a cell may have to say."""
    cells = [CellSpec(model=f"model{at}", side="cpu", feed="real", action="run", job=JobSpec(action="compare"))
             for at in range(models)]  # fmt: skip
    receipt = Receipt(
        key="k" * 32, verdict="failed", job=1, text="the sentence " + "of this cell " * 12 + "ends", locate=1,
        suspect="/layer.3/MatMul", pending="pending", bundle="/bundle", machine="node7",
    )  # fmt: skip
    rows = [CellRow(number=at, model=cell.model, side="cpu", feed="real", action="run", receipt=receipt)
            for at, cell in enumerate(cells)]  # fmt: skip
    changes = [Change(model="model0", side="cpu", feed="real", action="run", was="passed", now="failed")]
    spec = MatrixSpec(name="long", file="/long.toml", cells=cells)
    result = MatrixResult(name="long", changes=changes, conclusion="over")
    ended_job(
        workspace, JobSpec(action="matrix", params=msgspec.to_builtins(spec)),
        *(("row", {"table": "cells", "row": row}) for row in rows), ("result", {"data": msgspec.to_builtins(result)}),
    )  # fmt: skip


ROW = re.compile(r"^. model\d+ .*failed")
SENTENCE = ("the sentence", "ends")
WHOLE = (*SENTENCE, "was passed, now failed", "suspect /layer.3/MatMul", "not carried out", "/bundle", "on node7")


@pytest.mark.parametrize(
    ("size", "models", "rows", "told"),
    [
        ((80, 24), 30, 10, SENTENCE),
        ((80, 24), 6, 6, WHOLE),
        ((120, 40), 30, 24, WHOLE[:4]),
        ((200, 60), 30, 30, WHOLE),
        ((80, 16), 30, 4, SENTENCE[:1]),
    ],
)
def test_the_grid_and_the_cell_share_the_height(
    size: tuple[int, int], models: int, rows: int, told: tuple[str, ...]
) -> None:
    async def story(bench: Bench) -> None:
        long_matrix(bench.app.state.workspace, models)
        await bench.press("7")
        await bench.until(lambda: sum(bool(ROW.search(line)) for line in bench.text.splitlines()) >= rows)
        await bench.see("[failed*]", *told)
        assert "command" in bench.text.splitlines()[-1], "the footer is there"
        await bench.press("G")
        last = f"model{models - 1}"
        await bench.see(f"▌ {last} ", f"{last} × cpu × real", SENTENCE[0])

    with_bench(None, story, size=size)


def test_home_leads_to_a_matrix_and_names_no_other_screen() -> None:
    async def story(bench: Bench) -> None:
        long_matrix(bench.app.state.workspace, 3)
        await bench.see("[0 Home]", "enter shows it")
        assert "Jobs screen" not in bench.text
        await bench.press("enter")
        await bench.see("[7 Matrix]", "model2")

    with_bench(None, story, size=(80, 24))


@pytest.mark.parametrize(("cells", "whole"), [(100, True), (44, False)])
def test_columns_are_as_wide_as_their_names_where_there_is_room(cells: int, whole: bool) -> None:
    names = [CellSpec(model="bert", side=side, feed="", action="run", job=JobSpec(action="compare"))
             for side in ("cpu", "onnxruntime-threads", "half")]  # fmt: skip
    state = MatrixState()
    state.open(1, MatrixSpec(name="m", file="/m.toml", cells=names))
    above = heading(state, cells, UNICODE)[0]
    row = row_line(state, 0, True, cells, Names(UNICODE))
    told = ["".join(text for text, _ in line) for line in (above, row)]
    assert ("onnxruntime-threads" in told[0]) is whole and len(told[0]) <= cells
    assert told[0].index("half") == told[1].rindex("waits"), "in line"


def test_a_matrix_of_another_version_is_told_and_nothing_else_breaks(tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        ended_job(bench.app.state.workspace, JobSpec(action="matrix", params={"cells": 3}))
        await bench.see("job 1: ")
        await bench.press("7")
        await bench.see("no matrix in this workspace yet")
        await bench.press("n", "enter", "K", "y")
        await bench.see("[7 Matrix]")

    with_bench(None, story, size=(80, 24))


def test_columns_whose_names_are_too_long_stay_different_and_a_failure_is_told_whole() -> None:
    names = [CellSpec(model="bert", side=side, feed="", action="run", job=JobSpec(action="compare"))
             for side in ("onnxruntime-on-1-thread-of-the-cpu", "onnxruntime-on-2-thread-of-the-cpu")]  # fmt: skip
    state = MatrixState()
    state.open(1, MatrixSpec(name="m", file="/m.toml", cells=names))
    above = "".join(text for text, _ in heading(state, 36, UNICODE)[0])
    assert len({*above.split()[1:]}) == 2
    why = "a plan of the cells could not be written, " * 3 + "for the disk is full"
    state.facts.card = {"kind": "disk", "summary": why}
    told = " ".join("".join(text for text, _ in line).strip() for line in head_lines(state, 60, UNICODE))
    assert why in told
