"""`inspect model` and `inspect capability`: command lines over the fake TensorRT."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.models import save
from trt.conftest import ON_10
from trt.zygote import Zygote

Go = Callable[..., tuple[int, str]]
Zygotes = Callable[[int, bool], Zygote]


@pytest.fixture
def go(trt_version: int, zygotes: Zygotes, tmp_path: Path) -> Go:
    """Run a command line in a fork of a process with the fake TensorRT; return its exit code and output."""

    def run(*words: str, **faults: object) -> tuple[int, str]:
        paths = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2] / ".editable")]
        started = f"import sys; sys.path[:0] = {paths!r}\nfrom support.forked import run_line"
        source = f"{started}\nsys.exit(run_line({words!r}))"
        home = {"LAYERWISE_HOME": f"{tmp_path}-home", "LAYERWISE_LEASES": f"{tmp_path}-home/leases"}
        done = zygotes(trt_version, False).run(
            source, str(tmp_path), {**home, "LAYERWISE_FAKE_TRT_FAULTS": json.dumps(faults)}
        )
        return int(done["code"]), str(done["out"] + done["err"])

    return run


def chain(*operators: str) -> onnx.ModelProto:
    """One operator after the other, each with a weight of 4 KiB."""
    names = ["x", *(f"t{i}" for i in range(len(operators)))]
    weights = [numpy_helper.from_array(np.full((1, 1024), i + 2, np.float32), f"w{i}") for i in range(len(operators))]
    nodes = [
        helper.make_node(op, [before, weight.name], [after], f"{op.lower()}{i}")
        for i, (op, before, after, weight) in enumerate(zip(operators, names, names[1:], weights, strict=False))
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 1024]) for name in (names[0], names[-1])]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@ON_10
def test_an_engine_is_printed_with_its_nodes_and_exported(go: Go, tmp_path: Path) -> None:
    save(chain("Mul", "Add"), tmp_path / "m.onnx")
    little = ("--input-shapes", "x:[2,1024]", "--profiling-verbosity", "layer_names_only")
    assert go("convert", "m.onnx", "-o", "m.engine", *little)[0] == 0
    code, said = go("inspect", "model", "m.engine", "--show", "layers", "--nodes-of", "m.onnx")
    assert code == 0 and "--profiling-verbosity DETAILED" in said, said
    assert "==== TensorRT Engine ====" in said and "shape=(-1, 1024)" in said
    assert "2 ONNX Node(s), 0 without a layer" in said and "    mul0 -> mul0" in said.splitlines()
    assert go("convert", "m.onnx", "-o", "d.engine", "--profiling-verbosity", "detailed")[0] == 0
    code, said = go("inspect", "model", "d.engine", "--visual", "-o", "page.html")
    assert code == 0 and "2 nodes" in said, said
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_a_network_is_printed_as_json_and_exported(go: Go, tmp_path: Path) -> None:
    save(chain("Mul", "Add"), tmp_path / "m.onnx")
    code, said = go("inspect", "model", "m.onnx", "--display-as", "trt", "--show", "layers", "--json")
    assert code == 0 and [layer["name"] for layer in json.loads(said)["layers"]] == ["mul0", "add1"]
    code, said = go("convert", "m.onnx", "--convert-to", "onnx-like-trt-network", "-o", "like.onnx")
    assert code == 0 and [node.op_type for node in onnx.load(tmp_path / "like.onnx").graph.node] == ["ELEMENTWISE"] * 2


def test_supported_and_unsupported_parts_are_written(go: Go, tmp_path: Path) -> None:
    save(chain("Mul", "Add", "Sub", "Div"), tmp_path / "m.onnx")
    code, said = go("inspect", "capability", "m.onnx")
    assert code == 0 and "Graph is fully supported by TensorRT" in said
    code, said = go("inspect", "capability", "m.onnx", "--with-partitioning", "-o", "parts", unsupported_nodes=["sub2"])
    assert code == 0, said
    assert "The largest part that TensorRT takes: parts/supported_subgraph-nodes-0-1.onnx (2 of 4 nodes)" in said
    results = (tmp_path / "parts" / "results.txt").read_text()
    assert "Operator" in results and "the fake refuses node sub2" in results and "[[2, 3]]" in results
    found = {path.name: onnx.load(path) for path in (tmp_path / "parts").glob("*.onnx")}
    assert {name: [node.name for node in model.graph.node] for name, model in found.items()} == {
        "supported_subgraph-nodes-0-1.onnx": ["mul0", "add1"],
        "unsupported_subgraph-nodes-2-2.onnx": ["sub2"],
        "supported_subgraph-nodes-3-3.onnx": ["div3"],
    }
    assert all(tensor.raw_data for model in found.values() for tensor in model.graph.initializer)


def test_compatibility_uses_the_parser_and_a_build(go: Go, tmp_path: Path) -> None:
    save(chain("Mul", "Add", "Mul"), tmp_path / "m.onnx")
    code, said = go("check", "compatibility", "m.onnx", "--trt", "--onnxrt")
    assert code == 0 and "trt takes the model: 3 nodes load and run" in said, said
    code, said = go("check", "compatibility", "m.onnx", "--trt", "--json", unsupported_nodes=["mul2"])
    (backend,) = json.JSONDecoder().raw_decode(said)[0]["backends"]
    assert code == 1 and "the parser refuses node mul2 (Mul)" in backend["reason"]
    rows = [(row["op"], row["code"], row["nodes"], row["first"]) for row in backend["operators"]]
    assert rows == [("Mul", "refused", 1, "mul2"), ("Mul", "taken", 1, ""), ("Add", "taken", 1, "")]
    save(chain("Mul"), tmp_path / "new.onnx")  # no engine of it is kept
    code, said = go("check", "compatibility", "new.onnx", "--trt", fail_build="no room")
    assert code == 1 and "trt does not take the model: TensorRT cannot build the engine" in said and "no room" in said


def test_invalid_requests_are_reported(go: Go) -> None:
    for words, told in (
        (("inspect", "model", "m.engine", "--list-unbounded-dds"), "--list-unbounded-dds is for ONNX models"),
        (("inspect", "model", "m.onnx", "--nodes-of", "m.onnx"), "--nodes-of is for TensorRT engines"),
        (("inspect", "model", "net.py", "--nodes-of", "m.onnx"), "--nodes-of is for engines"),
        (("inspect", "capability", "m.engine"), "is taken for a TensorRT engine"),
    ):
        code, said = go(*words)
        assert code == 2 and told in said, said
