"""Where nodes come from, in the rows of comparisons and of locate jobs, and in what `run` prints."""

import json
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from support.cli import layerwise
from support.exported import noted_pair

SOURCE = {"file": "/src/net.py", "line": 12, "function": "forward"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    noted_pair(folder)
    return folder


def test_rows_of_layers_say_module_and_line(folder: Path) -> None:
    words = ("run", "wrong.onnx", "--reference-model", "noted.onnx", "--onnxrt", "--mark-all")
    found = json.loads(layerwise(*words, "--json", cwd=folder).stdout)
    rows = {row["tensor"]: row for row in found["rows"]}
    assert {name: row["module"] for name, row in rows.items()} == {
        "mm_0": ["block.0", "proj"], "add_0": ["block.0", "proj"], "tanh_0": ["block.0"],
        "mm_1": ["block.1", "proj"], "add_1": ["block.1", "proj"], "tanh_1": ["block.1"], "y": ["block.1"],
    }  # fmt: skip
    assert rows["mm_1"]["source"] == SOURCE
    assert "source" not in rows["y"]
    done = layerwise(*words, cwd=folder)
    assert "comes from   block.1.proj   /src/net.py:12 in forward" in done.stdout + done.stderr


def test_a_suspect_says_module_and_line(folder: Path) -> None:
    words = ("debug", "locate", "wrong.onnx", "--reference-model", "noted.onnx", "--onnxrt", "--json")
    suspect = json.loads(layerwise(*words, cwd=folder).stdout)["suspects"][0]
    assert (suspect["tensor"], suspect["module"], suspect["source"]) == ("mm_1", ["block.1", "proj"], SOURCE)


def test_rows_of_a_model_that_says_nothing_have_no_such_fields(tmp_path: Path) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", ends[:1], ends[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), tmp_path / "m.onnx")
    done = layerwise("run", "m.onnx", "--onnxrt", "--onnx", "--mark-all", "--json", cwd=tmp_path)
    assert all("module" not in row and "source" not in row for row in json.loads(done.stdout)["rows"])
