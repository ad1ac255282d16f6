"""`inspect model` and `inspect capability`: the real program over the fake TensorRT."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.cli import Done, layerwise
from support.models import save
from trt.zygote import Zygote

Go = Callable[..., Done]
Zygotes = Callable[[int, bool], Zygote]
BUILD = """
from pathlib import Path
from backends.runner import Loadable
from backends.trt.build import build_engine
from backends.trt.options import ConfigOptions, TrtOptions
options = TrtOptions(shapes={"x": [2, 1024]}, fresh=True, config=ConfigOptions(profiling_verbosity=VERBOSITY))
Path("m.engine").write_bytes(build_engine(Loadable(path=Path("m.onnx")), options).data)
"""


@pytest.fixture
def go(fake_trt: dict[str, str], tmp_path: Path) -> Go:
    def run(*words: str, **faults: object) -> Done:
        injected = {"LAYERWISE_HOME": str(tmp_path / "home"), "LAYERWISE_FAKE_TRT_FAULTS": json.dumps(faults)}
        return layerwise(*words, cwd=tmp_path, env={**fake_trt, **injected})

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


def _engine(zygotes: Zygotes, version: int, folder: Path, verbosity: str) -> None:
    """m.onnx, and m.engine built of it."""
    save(chain("Mul", "Add"), folder / "m.onnx")
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r})\nVERBOSITY = {verbosity!r}\n{BUILD}"
    assert zygotes(version, False).run(script, str(folder), {})["code"] == 0


def test_an_engine_is_shown_with_its_nodes(go: Go, trt_version: int, zygotes: Zygotes, tmp_path: Path) -> None:
    _engine(zygotes, trt_version, tmp_path, "layer_names_only")
    shown = go("inspect", "model", "m.engine", "--show", "layers", "--nodes-of", "m.onnx")
    assert shown.returncode == 0, shown.stderr
    assert "==== TensorRT Engine ====" in shown.stdout and "shape=(-1, 1024)" in shown.stdout
    assert "--profiling-verbosity DETAILED" in shown.stdout
    assert "2 ONNX Node(s), 0 without a layer" in shown.stdout and "    mul0 -> mul0" in shown.stdout.splitlines()


@pytest.mark.parametrize("trt_version", [11], indirect=True)
def test_an_engines_layers_are_drawn(go: Go, trt_version: int, zygotes: Zygotes, tmp_path: Path) -> None:
    _engine(zygotes, trt_version, tmp_path, "detailed")
    drawn = go("inspect", "model", "m.engine", "--visual", "-o", "page.html")
    assert drawn.returncode == 0 and "2 nodes" in drawn.stdout, drawn.stderr
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def test_parts_that_tensorrt_takes_and_does_not_are_written(go: Go, tmp_path: Path) -> None:
    save(chain("Mul", "Add", "Sub", "Div"), tmp_path / "m.onnx")
    done = go("inspect", "capability", "m.onnx", "--with-partitioning", "-o", "parts", unsupported_nodes=["sub2"])
    assert done.returncode == 0, done.stderr
    assert "The largest part that TensorRT takes: parts/supported_subgraph-nodes-0-1.onnx (2 of 4 nodes)" in done.stdout
    results = (tmp_path / "parts" / "results.txt").read_text()
    assert "Operator" in results and "the fake refuses node sub2" in results and "[[2, 3]]" in results
    found = {path.name: onnx.load(path) for path in (tmp_path / "parts").glob("*.onnx")}
    assert {name: [node.name for node in model.graph.node] for name, model in found.items()} == {
        "supported_subgraph-nodes-0-1.onnx": ["mul0", "add1"],
        "unsupported_subgraph-nodes-2-2.onnx": ["sub2"],
        "supported_subgraph-nodes-3-3.onnx": ["div3"],
    }
    assert all(tensor.raw_data for model in found.values() for tensor in model.graph.initializer)


def test_what_does_not_fit_is_said(tmp_path: Path) -> None:
    for words, told in (
        (("inspect", "model", "m.engine", "--list-unbounded-dds"), "--list-unbounded-dds is for ONNX models"),
        (("inspect", "model", "m.onnx", "--nodes-of", "m.onnx"), "--nodes-of is for TensorRT engines"),
        (("inspect", "capability", "m.engine"), "is taken for a TensorRT engine"),
    ):
        done = layerwise(*words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "") and told in done.stderr, done.stderr
