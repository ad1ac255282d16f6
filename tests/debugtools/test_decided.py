"""Whole numbers that rounding decides, such as the order of nearly equal scores: `run` and `debug locate` accuse nobody
for them, and name what decides otherwise for another reason.

The reference reads its scores before they are rounded to the FP16 of which they are observed, as onnxruntime's CPU
kernels do.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.comparing import ORT, run_compare
from support.locating import run_locate

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.debugtools.compare.arithmetic.nudge import decided
from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

NODE = helper.make_node
ROWS = 64
DECIDES: dict[str, tuple[list[onnx.NodeProto], list[onnx.NodeProto]]] = {
    "the largest ten": (
        [NODE("TopK", ["{read}", "ten"], ["most", "chosen"], "decide")],
        [NODE("TopK", ["{read}", "ten"], ["most", "chosen"], "decide", largest=0)],
    ),
    "the largest": (
        [NODE("ArgMax", ["{read}"], ["chosen"], "decide", axis=0)],
        [NODE("ArgMin", ["{read}"], ["chosen"], "decide", axis=0)],
    ),
    "what is beyond a limit": (
        [NODE("Greater", ["{read}", "limit"], ["chosen"], "decide")],
        [NODE("Less", ["{read}", "limit"], ["chosen"], "decide")],
    ),
    "steps": (
        [NODE("Mul", ["{read}", "many"], ["scaled"]), NODE("Cast", ["scaled"], ["chosen"], "decide", to=7)],
        [NODE("Mul", ["{read}", "fewer"], ["scaled"], "decide"), NODE("Cast", ["scaled"], ["chosen"], to=7)],
    ),
}


def model(path: Path, decides: list[onnx.NodeProto], *, low: bool = False, factor: float = 1.0) -> str:
    """Scores of which many are nearly equal, and what is decided by them. low: they are observed in FP16."""
    nodes = [NODE("Mul", ["x", "factor"], ["f"], "scale"), NODE("Abs", ["f"], ["raw" if low else "scores"], "score")]
    nodes += [NODE("Cast", ["raw"], ["scores"], to=TensorProto.FLOAT16)] if low else []
    for node in decides:
        one = onnx.NodeProto()
        one.CopyFrom(node)
        one.input[0] = node.input[0].format(read="raw" if low else "scores")
        nodes.append(one)
    weights = {
        "ten": np.int64([10]), "limit": np.float32(1), "many": np.float32(1e4), "fewer": np.float32(9e3),
        "factor": np.linspace(1, factor, ROWS, dtype=np.float32),
    }  # fmt: skip
    outputs = [helper.make_tensor_value_info(name, kind, None) for name, kind in (
        ("scores", TensorProto.FLOAT16 if low else TensorProto.FLOAT),
        ("chosen", TensorProto.BOOL if decides[0].op_type in ("Greater", "Less") else TensorProto.INT64),
    )]  # fmt: skip
    graph = helper.make_graph(
        nodes, "decide", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [ROWS])], outputs,
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return str(path)


def both(suspect: str, reference: str, folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """What `run` of all tensors finds, and which nodes `debug locate` suspects of what, the first first."""
    x = 1 + np.random.default_rng(5).permutation(ROWS).astype(np.float32) * np.float32(2**-12)
    np.savez(folder / "in.npz", x=x)
    runners = [ORT, RunnerSpec(kind="onnxrt", threads=1, model=reference)]
    feeds = FeedSpec(files=[str(folder / "in.npz")])
    spec = CompareSpec(model=suspect, runners=runners, feeds=feeds)
    marked = CompareSpec(model=suspect, runners=runners, feeds=feeds, marks=MarkSpec(everything=True))
    suspects = run_locate(LocateSpec(compare=spec)).suspects
    return run_compare(marked).result, {suspect["node"]: suspect["diagnosis"] for suspect in suspects}


@pytest.mark.parametrize("case", DECIDES)
def test_what_rounding_decides_is_no_fault_and_another_decision_is_one(case: str, tmp_path: Path) -> None:
    right, wrong = DECIDES[case]
    reference = model(tmp_path / "reference.onnx", right, low=True)
    result, nodes = both(model(tmp_path / "clean.onnx", right), reference, tmp_path)
    assert (result["first_bad"], nodes) == (None, {}), result["conclusion"]
    result, nodes = both(model(tmp_path / "wrong.onnx", wrong), reference, tmp_path)
    assert result["first_bad"]["node"] == "decide" and list(nodes)[:1] == ["decide"]


@pytest.mark.parametrize("case", DECIDES)
def test_a_fault_before_the_decision_is_named_and_the_decision_is_not(case: str, tmp_path: Path) -> None:
    right, _ = DECIDES[case]
    reference = model(tmp_path / "reference.onnx", right, low=True)
    result, nodes = both(model(tmp_path / "wrong.onnx", right, factor=1.2), reference, tmp_path)
    assert result["first_bad"]["node"] == "scale"
    assert list(nodes)[:1] == ["scale"] and nodes.get("decide") in (None, "ill-conditioned")


def test_only_what_a_rounding_of_that_size_can_turn_is_decided_by_it() -> None:
    scores = np.float32([3, 1, 1 + 2**-12, 2])

    def order(feed: Any) -> Array:
        return np.argsort(-feed["x"], kind="stable")

    feed = {"x": scores}
    assert decided(np.array([0, 3, 2, 1]), feed, order, 0.0)
    assert not decided(np.array([0, 3, 1, 2]), feed, order, 0.0)
    assert decided(np.array([0, 3, 1, 2]), feed, order, 2.0**-11)
    assert not decided(np.array([3, 0, 1, 2]), feed, order, 2.0**-11)
    assert not decided(np.array([0, 3]), feed, order, 2.0**-11)
    assert not decided(np.array([0, 3, 1, 2]), feed, lambda given: None, 2.0**-11)
