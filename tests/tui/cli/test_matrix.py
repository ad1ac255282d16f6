"""`layerwise matrix` by the real command: cells once, what changed, what did not pass again."""

import json
from pathlib import Path
from xml.etree import ElementTree

import onnx
from support.cli import layerwise
from support.matrices.sample import layers

FILE = """
on-failure = ["locate"]
models = ["net*.onnx"]
[sides]
old = { onnxrt = true, reference-model = "old.onnx" }
"""


def test_cells_are_run_once_and_what_changed_is_told(tmp_path: Path) -> None:
    for name, model in {"net0": layers(0), "net1": layers(0, fault=True), "old": layers(0)}.items():
        onnx.save(model, tmp_path / f"{name}.onnx")
    (tmp_path / "m.toml").write_text(FILE)
    first = layerwise("matrix", "m.toml", "--report", "m.xml", cwd=tmp_path)
    assert first.returncode == 1, first.stdout + first.stderr
    assert "passed   net0 × old × run" in first.stdout and "failed   net1 × old × run" in first.stdout
    assert "suspect #4 MatMul matmul2" in first.stdout and "1 of 2 cells passed; 1 failed: net1" in first.stdout

    report = (tmp_path / "m.xml").read_text(encoding="utf-8")
    assert 'name="net1 × old × run"' in report and "matmul2" in report, "the cell, and the jobs below it"

    onnx.save(layers(0), tmp_path / "net1.onnx")
    second = layerwise("matrix", "m.toml", "--against", "last", "--json", "-o", "result.json", cwd=tmp_path)
    told = json.loads(second.stdout)
    assert second.returncode == 0 and (told["run"], told["reused"]) == (1, 1)
    assert [(one["model"], one["was"], one["now"], one["why"]) for one in told["changes"]] == [
        ("net1", "failed", "passed", ["the model"])
    ]
    assert json.loads((tmp_path / "result.json").read_text())["cells"] == told["cells"]

    none = layerwise("matrix", "m.toml", "--only", "failed", cwd=tmp_path)
    assert none.returncode == 2 and "all cells passed" in none.stderr
    last = layerwise("matrix", "m.toml", "--attach", cwd=tmp_path)
    assert last.returncode == 0 and "2 of 2 cells passed." in last.stdout


def test_a_search_that_finds_a_fault_is_a_failed_cell_and_reports_say_so(tmp_path: Path) -> None:
    for name, model in {"net0": layers(0), "net1": layers(0, fault=True), "old": layers(0)}.items():
        onnx.save(model, tmp_path / f"{name}.onnx")
    (tmp_path / "m.toml").write_text(f"{FILE}[actions]\nlocate = []\n")
    done = layerwise("matrix", "m.toml", "--report", "r.xml", cwd=tmp_path)
    assert "passed   net0 × old × locate" in done.stdout and "failed   net1 × old × locate" in done.stdout
    suites = ElementTree.parse(tmp_path / "r.xml").getroot()
    failed = {suite.get("name", "").split(" | ")[0]: suite for suite in suites if int(suite.get("failures", "0"))}
    assert set(failed) == {"matrix", "net1 × old × locate"}
    assert "matmul2" in failed["net1 × old × locate"].findall(".//failure/..")[0].get("name", "")


def test_a_file_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.onnx").touch()
    (tmp_path / "m.toml").write_text('models = ["a.onnx"]\n[sides]\n"\\u001b[31m" = 3\n')
    done = layerwise("matrix", "m.toml", cwd=tmp_path)
    assert done.returncode == 2 and "m.toml: sides.\\x1b[31m: must be a list of words" in done.stderr
    assert "\x1b" not in done.stderr + done.stdout
