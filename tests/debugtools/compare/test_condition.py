"""A node that makes small differences large is no fault where both sides compute it right; a fault in it is one."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.comparing import ORT, Compared, run_compare

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec

NODE = helper.make_node
W = (np.random.default_rng(0).standard_normal((64, 64)) / 8).astype(np.float32)
SHIFT = np.full(64, 200, np.float32)
SHIFTED = [NODE("MatMul", ["x", "W"], ["a"], "project"), NODE("Add", ["a", "c"], ["b"], "shift")]
CASES = {
    "a mean taken off": [NODE("ReduceMean", ["b"], ["m"], axes=[-1]), NODE("Sub", ["b", "m"], ["y"], "steep")],
    "weights whose sums vanish": [NODE("MatMul", ["b", "Z"], ["y"], "steep")],
    "a normalisation": [NODE("LayerNormalization", ["b", "one", "zero"], ["y"], "steep")],
    "a variance by squares": [
        NODE("Mul", ["b", "b"], ["s"]), NODE("ReduceMean", ["s"], ["q"], axes=[-1]),
        NODE("ReduceMean", ["b"], ["m"], axes=[-1]), NODE("Mul", ["m", "m"], ["mm"]),
        NODE("Sub", ["q", "mm"], ["y"], "steep"),
    ],
    "an angle of many turns": [NODE("Mul", ["b", "c"], ["t"]), NODE("Sin", ["t"], ["y"], "steep")],
}  # fmt: skip


def steep(case: str, path: Path, factor: float = 1.0, shift: Array = SHIFT) -> str:
    """A model with an ill-conditioned node, whose result is multiplied. shift: added before it."""
    nodes = [*SHIFTED, *CASES[case], NODE("Mul", ["y", "factor"], ["f"], "scale"), NODE("Abs", ["f"], ["z"], "end")]
    weights = {
        "W": W, "Z": W - W.mean(0, keepdims=True), "c": shift, "factor": np.float32([factor]),
        "one": np.ones(64, np.float32), "zero": np.zeros(64, np.float32),
    }  # fmt: skip
    graph = helper.make_graph(
        nodes, "steep", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [16, 64])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return str(path)


def compared(suspect: str, good: str) -> Compared:
    sides = [ORT, RunnerSpec(kind="onnxrt", threads=1, model=good)]
    return run_compare(CompareSpec(model=suspect, runners=sides, marks=MarkSpec(everything=True), feeds=FeedSpec()))


@pytest.mark.parametrize("case", CASES)
def test_what_a_node_makes_of_rounding_is_no_fault_and_what_is_more_is_one(case: str, tmp_path: Path) -> None:
    good = steep(case, tmp_path / "good.onnx")
    rounded = np.nextafter(SHIFT, np.where(np.arange(64) % 3, 0, 999), dtype=np.float32)
    done = compared(steep(case, tmp_path / "rounded.onnx", shift=rounded), good)
    assert [row["tensor"] for row in done.table() if row["passed"] is False] == [], done.result["conclusion"]
    (row, *_) = [row for row in done.table() if row["finding"] == "ill-conditioned"]
    assert row["node"] == "steep" and "makes small differences large" in row["note"]
    assert done.result["first_ill_conditioned"]["node"] == "steep"
    assert "Small differences become large at" in done.result["conclusion"]
    wrong = compared(steep(case, tmp_path / "wrong.onnx", 1.2), good)
    assert wrong.result["first_bad"]["node"] == "scale"
