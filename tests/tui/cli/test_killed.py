"""Commands killed while they write in their own process: the next one there leaves what it should, and no more."""

import importlib
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.forked import run_line
from support.models import mlp
from support.writers import Lines, forked, kill_points

from layerwise._tool.backends.filesystem import temporary
from layerwise.json import save_json

COMMANDS = {
    "data concat": "data concat feeds.json feeds.json -o out.json",
    "data merge": "data merge feeds.json more.json -o out.json",
    "insert": "surgeon insert m.onnx --inputs x --outputs m0 --op Relu -o out.onnx --overwrite",
    "half": "inspect model m.onnx --fp-to-fp16",
}


@pytest.fixture(scope="module")
def imported() -> None:
    """Forks need not import again."""
    for module in (
        "layerwise._tool.tui.cli.data", "layerwise._tool.tui.cli.inspect.command", "layerwise._tool.tui.cli.leaf",
        "layerwise._tool.surgery.precision.conversion", "layerwise._tool.backends.saved_data.actions",
    ):  # fmt: skip
        importlib.import_module(module)


@pytest.fixture
def folder(tmp_path: Path, imported: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "models"
    made.mkdir()
    onnx.save(mlp(), made / "m.onnx")
    save_json([{"x": np.zeros((1, 16), np.float32)}], str(made / "feeds.json"))
    save_json([{"y": np.ones((1, 16), np.float32)}], str(made / "more.json"))
    (made / ".out.json.abcd1234.tmp").write_text("the user's")
    (tmp_path / "aside").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "aside"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(made)
    return made


def run(line: str, unnamed: bool, last: int = -1, told: Path | None = None) -> int:
    """The exit code in a fork, which dies at line `last` of our writers; `told`: where it says how many there were."""

    def work() -> int:
        from layerwise._tool.backends.filesystem import unnamed_files as module

        temporary._swept.clear()
        if not unnamed:
            module.FLAG = None
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        with Lines(last) as lines:
            code = run_line(line.split())
        if told is not None:
            told.write_text(str(lines.count))
        return code

    return forked(work)


def found(folder: Path) -> set[str]:
    return {f"{place.name}/{path.name}" for place in (folder, folder.parent / "aside") for path in place.iterdir()}


@pytest.mark.parametrize("unnamed", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_next_command_leaves_nothing_of_a_killed_one(folder: Path, command: str, unnamed: bool) -> None:
    line, count = COMMANDS[command], folder.parent / "count"
    assert run(line, unnamed, told=count) == 0
    wanted = found(folder)
    killed = 0
    for last in kill_points(int(count.read_text()), 3, seed=len(command)):
        killed += run(line, unnamed, last) != 0  # itself or its worker
        assert run(line, unnamed) == 0
        assert found(folder) == wanted, last
    assert killed
