"""Without onnxruntime: which commands work, and that each other one says in one sentence what to install."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from support import models
from support.cli import fresh_layerwise as layerwise
from support.forks import forked_line
from support.terminal import app
from trt.zygote import Zygote

from layerwise._tool.backends.installed import install_line

INSTALLED = str(Path(__file__).parents[2] / ".editable")
ABSENT = 'raise ModuleNotFoundError("No module named \'onnxruntime\'", name="onnxruntime")\n'
SENTENCE = f"needs onnxruntime, not installed here: {install_line('onnxruntime')}"
WORKS = {  # exit code
    "--version": 0,
    "--help": 0,
    "inspect model m.onnx --show layers attrs weights": 0,
    "inspect diff m.onnx other.onnx": 1,
    "inspect sparsity m.onnx": 0,
    "check lint m.onnx": 0,
    "surgeon extract m.onnx --inputs x:auto:auto --outputs m0 -o part.onnx": 0,
    "surgeon sanitize m.onnx -o clean.onnx": 0,
    "surgeon prune m.onnx -o pruned.onnx": 0,
    "surgeon weight-strip m.onnx -o stripped.onnx": 0,
    "convert m.onnx --fp-to-fp16 -o half.onnx": 0,
    "convert m.onnx --opset 18 -o older.onnx": 0,
    "surgeon edit m.onnx --rename-tensor m0 q -o edited.onnx": 0,
    "run m.onnx --onnx --onnx": 0,
}
ASKS = (
    "run m.onnx --onnxrt --onnxrt",
    "check lint m.onnx --providers cpu",
    "surgeon sanitize constant.onnx --fold-constants -o folded.onnx",
    "convert m.onnx --int8 -o int8.onnx",
    "bench m.onnx --onnxrt",
    "debug locate m.onnx --onnxrt --reference-model other.onnx",
    "demo --plain",
)


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of modules, before which onnxruntime cannot be found."""
    package = tmp_path_factory.mktemp("without") / "onnxruntime"
    package.mkdir()
    (package / "__init__.py").write_text(ABSENT)
    return package.parent


@pytest.fixture(scope="module")
def zygote(without: Path) -> Iterator[Zygote]:
    """What command lines are forked from."""
    environment = {**os.environ, "PYTHONPATH": f"{without}:{INSTALLED}:{Path(__file__).parents[1]}"}
    made = Zygote(environment, "support.forked", "layerwise._tool.tui.__main__", "layerwise._tool.tui.cli.leaf")
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path, without: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Models, where onnxruntime cannot be found."""
    monkeypatch.setenv("PYTHONPATH", f"{without}:{INSTALLED}")
    model = models.mlp()
    onnx.save(model, tmp_path / "m.onnx")
    array = onnx.numpy_helper.to_array(model.graph.initializer[0])
    model.graph.initializer[0].raw_data = np.zeros_like(array).tobytes()
    onnx.save(model, tmp_path / "other.onnx")
    text = "g (float[2] x) => (float[2] y) <float[2] a = {1,2}> { c = Add(a, a) y = Mul(x, c) }"
    onnx.save(models.from_text(text), tmp_path / "constant.onnx")
    return tmp_path


@pytest.mark.parametrize("line", WORKS)
def test_what_needs_no_engine_works(line: str, folder: Path, zygote: Zygote) -> None:
    code, said = forked_line(zygote, line.split(), folder)
    assert code == WORKS[line], said
    assert (SENTENCE in said) == (line == "check lint m.onnx")


@pytest.mark.parametrize("line", ASKS)
def test_what_needs_one_says_what_to_install(line: str, folder: Path, zygote: Zygote) -> None:
    code, said = forked_line(zygote, line.split(), folder)
    assert code == 1 and said.count(SENTENCE) == 1 and "Traceback" not in said, said


def test_a_new_process_says_so_too(folder: Path) -> None:
    done = layerwise(*ASKS[0].split(), cwd=folder)
    assert done.returncode == 1 and done.stderr.count(SENTENCE) == 1


def test_a_bad_structure_is_found_without_an_engine(folder: Path) -> None:
    model = onnx.load(folder / "m.onnx")
    model.graph.node[0].input[0] = "nowhere"
    onnx.save(model, folder / "bad.onnx")
    done = layerwise("check", "lint", "bad.onnx", "--json", cwd=folder)
    assert done.returncode == 1
    entries = json.loads(done.stdout)["lint_entries"]
    assert any("'nowhere'" in entry["message"] for entry in entries if entry["level"] == "exception")


def test_the_app_opens_without_an_engine(folder: Path) -> None:
    with app(folder / "m.onnx", env={"PYTHONPATH": os.environ["PYTHONPATH"]}, fresh=True) as terminal:
        terminal.wait_for("/fc0/MatMul")
