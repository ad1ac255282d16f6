"""A job that was done and is asked for again makes what it made the first time, and says what it said."""

import os
import shutil
from pathlib import Path

import pytest
from support.cli import layerwise
from support.debugging import saved
from support.forked import ForkedWorker
from support.models import mlp

from layerwise._tool.backends.jobs.processes import supervise
from layerwise._tool.backends.jobs.workspace.store import Workspace
from layerwise._tool.debugtools import ACTIONS

_SIDES = "bad.onnx --reference-model good.onnx --onnxrt"
COMMANDS = {
    f"run {_SIDES} --save-heatmaps made": 1,
    f"run {_SIDES} --save-outputs made.json": 1,
    f"run {_SIDES} --mark-all --save-accuracy-results made.json": 1,
    f"run {_SIDES} --save-inputs made.json": 1,
    f"run {_SIDES} --save-input-blob made": 1,
    f"run {_SIDES} --save-onnx made.onnx": 1,
    f"run {_SIDES} --mark-all --save-outputs made": 1,
    f"debug reduce {_SIDES} -o made.onnx": 0,
    f"debug reduce {_SIDES} --save-debug-replay made.json -o small.onnx": 0,
    "debug precision good.onnx --onnxrt --atol 1e-6 --rtol 1e-6 -o made.onnx": 0,
    "convert good.onnx --fp-to-fp16 -o made.onnx": 0,
    "convert good.onnx --int8 -o made.onnx": 0,
    "surgeon edit good.onnx --insert h0 Mul 2.0 --try -o made.onnx": 0,
    "check lint good.onnx -o made.json": 0,
}


def contents(path: Path) -> dict[str, int]:
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return {str(file.relative_to(path)): file.stat().st_size for file in files if file.is_file()}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_was_removed_is_made_again(tmp_path: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "start_worker", ForkedWorker)
    saved(tmp_path, mlp(), "/fc0/MatMul")
    done = layerwise(*command.split(), cwd=tmp_path)
    assert done.returncode == COMMANDS[command], done.stdout + done.stderr
    (made,) = tmp_path.glob("made*")
    first, home = contents(made), Workspace()
    job = max(home.ids())
    passed = (home.view(job).result or {}).get("passed")
    shutil.rmtree(made) if made.is_dir() else made.unlink()
    folder, lock = home.reopen(job)
    state = supervise.Supervision(folder, lock, ACTIONS).run()
    os.close(lock)
    view = home.view(job)
    assert (state, view.attempt, (view.result or {}).get("passed")) == ("done", 2, passed), view.card
    assert contents(made).keys() == first.keys()
    again = layerwise("attach", str(job), cwd=tmp_path)
    assert again.returncode == COMMANDS[command] and f"Job {job}: done" in again.stdout
