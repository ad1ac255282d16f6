"""`--feeds auto`: what is chosen is said and kept in the job; a fault in any row is seen; errors say how to pin."""

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from support.cli import layerwise
from support.lookalikes import LOOKALIKES
from support.onnx_text import model

from layerwise._tool.backends.feeds.files import load_feeds
from layerwise._tool.backends.jobs.inline import run_inline
from layerwise._tool.backends.jobs.journal.earlier_attempts import rows_of
from layerwise._tool.backends.jobs.spec import JobSpec
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools import ACTIONS
from layerwise._tool.debugtools.compare.spec import CompareSpec


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("feeds")
    good = LOOKALIKES["bert"]()
    onnx.save(good, path / "good.onnx")
    table = next(tensor for tensor in good.graph.initializer if tensor.name == "word.weight")
    values = onnx.numpy_helper.to_array(table).copy()
    values[2:] *= np.float32(1.01)  # rows that ids of 0 and 1 never reach
    table.CopyFrom(onnx.numpy_helper.from_array(values, table.name))
    onnx.save(good, path / "bad.onnx")
    misfit = "m (float[batch, n] x, int64[k] s) => (float[p, q] y) {\n t = Reshape(x, s)\n y = MatMul(t, w)\n}"
    onnx.save(model(misfit, {"w": (11, 3)}), path / "misfit.onnx")
    return path


def last_rows() -> list[dict[str, Any]]:
    """The rows of table `plan` of the last job."""
    workspace = Workspace()
    return list(rows_of(workspace.jobs / str(max(workspace.numbers())), "plan"))


def test_a_fault_in_rows_that_default_ids_never_reach_is_seen(folder: Path) -> None:
    words = ("run", "bad.onnx", "--reference-model", "good.onnx", "--onnxrt", "--rtol", "1e-4")
    assert layerwise(*words, cwd=folder).returncode == 0  # as Polygraphy: ids 0 and 1, one token
    found = layerwise(*words, "--feeds", "auto", "--save-inputs", "fed.json", cwd=folder)
    assert found.returncode == 1
    assert "Input input_ids: int64 [2,16], 0…30521: gathers from 'word.weight' of 30522 rows" in found.stdout
    assert "--val-range 'input_ids:[0,30521]'" in found.stdout
    located = layerwise("debug", "locate", *words[1:-2], "--feeds", "auto", cwd=folder)
    assert located.returncode == 0 and "Gather" in located.stdout
    rows = last_rows()
    assert [row["name"] for row in rows] == ["input_ids", "attention_mask", "token_type_ids"]
    assert rows[0]["high"] == 30521 and "30522 rows" in rows[0]["reason"]
    fed = load_feeds(folder / "fed.json")[0]
    assert fed["input_ids"].shape == (2, 16) and fed["attention_mask"].array().min() == 0


def test_given_shapes_and_ranges_win(folder: Path) -> None:
    words = ("run", "good.onnx", "--onnxrt", "--feeds", "auto", "--input-shapes", "input_ids:[3,5]")
    done = layerwise(*words, "--val-range", "input_ids:[4,5]", "--save-inputs", "given.json", cwd=folder)
    assert done.returncode == 0 and "range as given (the graph: gathers from" in done.stdout
    fed = load_feeds(folder / "given.json")[0]
    assert fed["attention_mask"].shape == (3, 5) and set(fed["input_ids"].array().reshape(-1).tolist()) == {4, 5}


def test_inputs_that_do_not_run_say_how_to_pin_them(folder: Path) -> None:
    for command in (("run", "misfit.onnx", "--onnxrt"), ("bench", "misfit.onnx", "--duration", "0")):
        done = layerwise(*command, "--feeds", "auto", cwd=folder)
        assert done.returncode == 1 and "give others: --input-shapes NAME:[DIMS]" in done.stdout + done.stderr
    done = layerwise("run", "misfit.onnx", "--onnxrt", cwd=folder)
    assert done.returncode == 1 and "chosen from the graph" not in done.stdout + done.stderr


def test_other_commands_take_it(folder: Path) -> None:
    for command in (
        ("check", "lint", "good.onnx"), ("bench", "good.onnx", "--duration", "0", "--batches", "3"),
        ("convert", "good.onnx", "--int8", "-o", "int8.onnx"),
        ("surgeon", "sanitize", "good.onnx", "--force-fallback-shape-inference", "-o", "clean.onnx"),
    ):  # fmt: skip
        done = layerwise(*command, "--feeds", "auto", cwd=folder)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "30522 rows" in done.stdout + done.stderr
    layers = json.loads(layerwise("run", "good.onnx", "--onnxrt", "--feeds", "auto", "--json", cwd=folder).stdout)
    assert layers["passed"] is True and [row["kind"] for row in layers["plan"]] == ["integers", "mask", "integers"]


def test_a_tensor_is_looked_at_with_the_inputs_that_were_planned(folder: Path) -> None:
    shapes = {"input_ids": [[2, 4], [1, 6]]}
    spec = CompareSpec(
        model=str(folder / "bad.onnx"), feeds=FeedSpec(made="auto", shapes=shapes, iterations=2),
        runners=[RunnerSpec(kind="onnxrt"), RunnerSpec(kind="onnxrt", model=str(folder / "good.onnx"))],
    )  # fmt: skip
    workspace = Workspace()
    compared = run_inline(
        JobSpec(action="compare", params=msgspec.to_builtins(spec)), lambda event: None, workspace, ACTIONS
    )
    row = next(row for row in rows_of(compared.folder, "layers") if row["iteration"] == 1)
    params = {"compare": msgspec.to_builtins(spec), "tensor": "y", "iteration": 1}
    seen = run_inline(JobSpec(action="tensor_view", params=params), lambda event: None, workspace, ACTIONS)
    assert seen.result is not None and seen.result["row"]["max_abs"] == row["max_abs"] > 0
