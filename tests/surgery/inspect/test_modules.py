"""`inspect model` with the modules that nodes come from."""

import json
from pathlib import Path

import onnx
import pytest
from support.cli import layerwise
from support.exported import note, noted_pair

TREE = """\
    ---- 5 Module(s) ----
    (top) [Net] | 7 nodes
        block.0 [Block] | 3 nodes
            proj [Linear] | 2 nodes
        block.1 [Block] | 4 nodes
            proj [Linear] | 2 nodes
    
    7 of 7 nodes have a module: 6 by the exporter's metadata, 0 by their names, 1 by the nodes around them
"""  # noqa: W293 (a line of the output)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return noted_pair(tmp_path_factory.mktemp("noted"))[0]


def test_the_tree_of_modules_with_their_nodes(model: Path) -> None:
    done = layerwise("inspect", "model", model, "--show", "modules", cwd=model.parent)
    assert TREE.rstrip() in done.stdout
    assert "MatMul" not in done.stdout


def test_only_the_nodes_of_a_module(model: Path) -> None:
    words = ("inspect", "model", model, "--show", "layers", "modules", "--module", "block.*.proj")
    done = layerwise(*words, cwd=model.parent)
    assert [line.split("|")[0].split() for line in done.stdout.splitlines() if "[Op: " in line] == [
        ["Node", "0"], ["Node", "1"], ["Node", "3"], ["Node", "4"],
    ]  # fmt: skip
    assert "(top) [Net] | 4 nodes" in done.stdout


def test_nodes_in_json_say_module_and_line(model: Path) -> None:
    words = ("inspect", "model", model, "--show", "layers", "modules", "--module", "block.1", "--json")
    found = json.loads(layerwise(*words, cwd=model.parent).stdout)
    first, last = found["nodes"][0], found["nodes"][-1]
    assert (first["module"], first["classes"][-1], first["source_node"], first["module_by"]) == (
        ["block.1", "proj"], "torch.nn.Linear", "mm_1", "metadata",
    )  # fmt: skip
    assert first["source"] == {"file": "/src/net.py", "line": 12, "function": "forward"}
    assert (last["op"], last["module"], last["module_by"]) == ("Cast", ["block.1"], "neighbours")
    assert "source" not in last
    assert found["modules"][-1] == {"module": ["block.1", "proj"], "class": "torch.nn.Linear", "nodes": 2, "own": 2}
    assert found["modules_by"] == {"metadata": 6, "name": 0, "neighbours": 1, "unknown": 0}


def test_a_module_that_is_not_there_and_modules_of_an_engine_are_refused(model: Path) -> None:
    done = layerwise("inspect", "model", model, "--module", "block.7", cwd=model.parent)
    assert (done.returncode, "no node lies in module 'block.7'" in done.stderr) == (1, True)
    done = layerwise("inspect", "model", model, "--visual", "--show", "modules", cwd=model.parent)
    assert (done.returncode, "ONNX models shown as text" in done.stderr) == (2, True)


def test_names_of_modules_are_escaped(tmp_path: Path) -> None:
    proto = onnx.load(noted_pair(tmp_path)[0])
    note(proto.graph.node[0], "evil\x1b[31m\u202e", "mm")
    onnx.save(proto, tmp_path / "evil.onnx")
    done = layerwise("inspect", "model", "evil.onnx", "--show", "modules", cwd=tmp_path)
    assert "evil\\x1b[31m\\u202e" in done.stdout and "\x1b[31m" not in done.stdout
