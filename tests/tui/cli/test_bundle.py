"""`layerwise debug bundle`: of what a search has found, or of any node of a comparison."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import BAD_LAYER, chain_pair
from support.cli import layerwise

SIDES = ("wrong.onnx", "--onnxrt", "--reference-model", "chain.onnx")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chain_pair(tmp_path)
    return tmp_path


def script(bundle: Path) -> int:
    command = [sys.executable, "-I", "repro.py"]
    return subprocess.run(command, cwd=bundle, capture_output=True, check=False).returncode


def test_of_the_newest_search(folder: Path) -> None:
    assert layerwise("debug", "bundle", cwd=folder).returncode == 2
    assert layerwise("debug", "reduce", *SIDES, cwd=folder).returncode == 0
    done = layerwise("debug", "bundle", "-o", "bug", cwd=folder)
    assert (done.returncode, script(folder / "bug")) == (0, 1), done.stdout
    assert f"#{2 * BAD_LAYER} MatMul /layer.{BAD_LAYER}/MatMul" in (folder / "bug" / "README.md").read_text()
    again = layerwise("debug", "bundle", "--number", "2", cwd=folder)
    assert (again.returncode, "there is none of number 2" in again.stdout + again.stderr) == (2, True)


def test_of_a_node_of_a_comparison(folder: Path) -> None:
    assert layerwise("run", *SIDES, "--mark-all", cwd=folder).returncode == 1
    done = layerwise("debug", "bundle", "1", "--nodes", str(2 * BAD_LAYER), "-o", "bug", "--json", cwd=folder)
    assert (done.returncode, script(folder / "bug")) == (0, 1), done.stdout
    assert json.loads(done.stdout)["result"]["path"] == str(folder / "bug")
    right = layerwise("debug", "bundle", "1", "--nodes", "0", "-o", "right", cwd=folder)
    assert (right.returncode, script(folder / "right")) == (1, 0)
    none = layerwise("debug", "bundle", "1", "--nodes", "99", cwd=folder)
    assert (none.returncode, "has nodes 0 to 39" in none.stdout + none.stderr) == (2, True)


def test_what_the_comparison_saved_is_left_alone(folder: Path) -> None:
    saving = ("--save-outputs", "outs", "--save-input-blob", "blob")
    assert layerwise("run", *SIDES, "--mark-all", *saving, cwd=folder).returncode == 1
    before = {path: path.stat().st_mtime_ns for name in ("outs", "blob") for path in (folder / name).rglob("*")}
    done = layerwise("debug", "bundle", "1", "--nodes", str(2 * BAD_LAYER), "-o", "bug", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert before and {path: path.stat().st_mtime_ns for path in before} == before


def test_one_side_has_no_golden_outputs(folder: Path) -> None:
    assert layerwise("run", "chain.onnx", "--onnxrt", cwd=folder).returncode == 0
    done = layerwise("debug", "bundle", "1", "--nodes", "0", cwd=folder)
    assert (done.returncode, "no two sides" in done.stdout + done.stderr) == (2, True)
