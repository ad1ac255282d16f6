"""The nine kinds of onnx-graphsurgeon's examples, by command line and by the exported script, give the same model."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from support.cli import layerwise, run_script
from support.edit_models import described

Array = NDArray[np.float32]
Feed = dict[str, Array]


def value(name: str, shape: list[int | str | None]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model(path: Path, nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto],
          outputs: list[onnx.ValueInfoProto], **weights: NDArray[np.generic]) -> Path:  # fmt: skip
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return path


def chain(path: Path) -> Path:
    """y = relu(fake(x · w) + b)"""
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["product"], "mul"),
        helper.make_node("Identity", ["product"], ["passed"], "fake"),
        helper.make_node("Add", ["passed", "b"], ["sum"], "add"),
        helper.make_node("Relu", ["sum"], ["y"], "relu"),
    ]
    weights = {"w": np.full(4, 2, np.float32), "b": np.arange(-2, 2, dtype=np.float32)}
    return model(path, nodes, [value("x", [3, 4])], [value("y", [3, 4])], **weights)


def clipped(path: Path) -> Path:
    """y = max(min(x, high), low), twice over"""
    nodes = [
        helper.make_node("Min", ["x", "high"], ["a"], "min"),
        helper.make_node("Max", ["a", "low"], ["b"], "max"),
        helper.make_node("Neg", ["b"], ["c"], "neg"),
        helper.make_node("Min", ["c", "high"], ["d"], "min2"),
        helper.make_node("Max", ["d", "low"], ["y"], "max2"),
    ]
    weights = {"low": np.array(-0.5, np.float32), "high": np.array(0.25, np.float32)}
    return model(path, nodes, [value("x", [3, 4])], [value("y", [3, 4])], **weights)


def shaped(path: Path) -> Path:
    """y = x flattened, by the shape that it has"""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], "shape"),
        helper.make_node("Gather", ["shape", "zero"], ["rows"], "gather"),
        helper.make_node("Concat", ["rows", "rest"], ["target"], "concat", axis=0),
        helper.make_node("Reshape", ["x", "target"], ["y"], "reshape"),
    ]
    weights = {"zero": np.array([0], np.int64), "rest": np.array([-1], np.int64)}
    return model(path, nodes, [value("x", ["n", 2, 2])], [value("y", ["n", None])], **weights)


def foldable(path: Path) -> Path:
    """y = x + (w + w) · w"""
    nodes = [
        helper.make_node("Add", ["w", "w"], ["double"], "double"),
        helper.make_node("Mul", ["double", "w"], ["square"], "square"),
        helper.make_node("Add", ["x", "square"], ["y"], "add"),
    ]
    weight = np.linspace(-1, 1, 4, dtype=np.float32)
    return model(path, nodes, [value("x", [3, 4])], [value("y", [3, 4])], w=weight)


@dataclass(frozen=True)
class Family:
    make: Callable[[Path], Path] | None
    words: list[str]
    ops: list[str]
    shape: tuple[int, ...]
    expected: Callable[[Array], Array]
    feed: str = "x"


RNG = np.random.default_rng(3)
FAMILIES = {
    "build": Family(
        None,
        ["--new", "17", "--add-input", "x:[3,4]:float32", "--add-weight", "w", "[[1],[2],[3],[4]]:float32",
         "--add-node", "MatMul", "product", "x", "w", "--add-node", "LeakyRelu", "y", "product", "alpha=0.5",
         "--mark-output", "y"],
        ["MatMul", "LeakyRelu"], (3, 4),
        lambda x: np.where((p := x @ np.array([[1], [2], [3], [4]], np.float32)) < 0, p * np.float32(0.5), p),
    ),
    "insert": Family(
        chain, ["--insert", "sum", "Mul", "3.0"], ["Mul", "Identity", "Add", "Mul", "Relu"], (3, 4),
        lambda x: np.maximum((x * 2 + np.arange(-2, 2, dtype=np.float32)) * 3, 0),
    ),
    "delete": Family(
        chain, ["--delete", "fake"], ["Mul", "Add", "Relu"], (3, 4),
        lambda x: np.maximum(x * 2 + np.arange(-2, 2, dtype=np.float32), 0),
    ),
    "replace": Family(
        chain, ["--replace", "relu", "LeakyRelu", "alpha=0.5", "--set-op", "add", "Sub"],
        ["Mul", "Identity", "Sub", "LeakyRelu"], (3, 4),
        lambda x: np.where((s := x * 2 - np.arange(-2, 2, dtype=np.float32)) < 0, s * np.float32(0.5), s),
    ),
    "traverse": Family(  # nodes reached by the tensors that they make, and by those that read these
        chain, ["--rename-tensor", "sum", "middle", "--rename-node", "middle", "found", "--set-op", "found", "Sub",
                "--mark-output", "middle"],
        ["Mul", "Identity", "Sub", "Relu"], (3, 4),
        lambda x: np.maximum(x * 2 - np.arange(-2, 2, dtype=np.float32), 0),
    ),
    "fold": Family(
        foldable, ["--fold", "--clean-up", "--toposort"], ["Add"], (3, 4),
        lambda x: x + (w + w) * w if (w := np.linspace(-1, 1, 4, dtype=np.float32)).size else x,
    ),
    "shape": Family(
        shaped, ["--set-shape", "x:[3,2,2]", "--infer-shapes", "--fold"], ["Reshape"], (3, 2, 2),
        lambda x: x.reshape(3, 4),
    ),
    "isolate": Family(
        chain, ["--set-inputs", "passed:[3,4]:float32", "--set-outputs", "sum", "--clean-up"], ["Add"], (3, 4),
        lambda x: x + np.arange(-2, 2, dtype=np.float32), "passed",
    ),
    "layer API": Family(
        clipped, ["--replace-pattern", "Min,Max", "Clip", "$0.0", "$1.1", "$0.1"], ["Clip", "Neg", "Clip"], (3, 4),
        lambda x: np.clip(-np.clip(x, np.float32(-0.5), np.float32(0.25)), np.float32(-0.5), np.float32(0.25)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAMILIES)
def test_command_line_and_script_make_the_same_model(name: str, tmp_path: Path) -> None:
    family = FAMILIES[name]
    base = [] if family.make is None else [family.make(tmp_path / "base.onnx")]
    words = ["-o", "new.onnx", "--script", "edits.py", "--save-edits", "edits.json"]
    done = layerwise("surgeon", "edit", *base, *family.words, *words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    made = onnx.load(tmp_path / "new.onnx")
    onnx.checker.check_model(made, full_check=True)
    assert [node.op_type for node in made.graph.node] == family.ops
    x = RNG.standard_normal(family.shape).astype(np.float32)
    session = onnxruntime.InferenceSession(tmp_path / "new.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {family.feed: x})[0], family.expected(x), rtol=1e-6)

    ran = run_script("edits.py", *base, "scripted.onnx", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "edits.py").read_text()
    assert "layerwise" not in text
    assert described(onnx.load(tmp_path / "scripted.onnx")) == described(made), text

    if base:
        again = layerwise("surgeon", "replay", "edits.json", *base, "-o", "again.onnx", cwd=tmp_path)
        assert again.returncode == 0, again.stdout + again.stderr
        assert (tmp_path / "again.onnx").read_bytes() == (tmp_path / "new.onnx").read_bytes()
