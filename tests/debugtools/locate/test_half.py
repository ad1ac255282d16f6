"""An FP16 model, as converters make it, against its FP32 original: what a mask is made of is no fault."""

from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.locating import ORT, run_locate

from layerwise._tool.backends.specs import FeedSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.locate.spec import LocateSpec

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


def masked(kind: int, hidden: float, scale: float = 0.5) -> onnx.ModelProto:
    """x [4, 8] and keep [4, 8] → y: x · w, masked, its Softmax, times w; inner tensors of type `kind`."""
    dtype = np.float32 if kind == FLOAT else np.float16
    make, rng = helper.make_node, np.random.default_rng(2)
    own = {"w": rng.standard_normal((8, 8)) / 3, "hidden": hidden, "scale": scale, "zero": 0.0}
    nodes = [
        make("Cast", ["x"], ["x_half"], "cast", to=kind), make("MatMul", ["x_half", "w"], ["scores"], "scores"),
        make("Where", ["keep", "zero", "hidden"], ["mask"], "mask"),
        make("Mul", ["scores", "scale"], ["scaled"], "scale"),
        make("Add", ["scaled", "mask"], ["sum"], "add"), make("Softmax", ["sum"], ["soft"], "soft", axis=-1),
        make("MatMul", ["soft", "w"], ["out"], "out"), make("Cast", ["out"], ["y"], "back", to=FLOAT),
    ]  # fmt: skip
    inputs = [helper.make_tensor_value_info(n, t, [4, 8]) for n, t in (("x", FLOAT), ("keep", TensorProto.BOOL))]
    weights = [numpy_helper.from_array(np.asarray(value, dtype), name) for name, value in own.items()]
    outputs = [helper.make_tensor_value_info("y", FLOAT, [4, 8])]
    graph = helper.make_graph(nodes, "masked", inputs, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(("hidden", "scale", "accused"), [(-1e4, 0.5, []), (-65504.0, 0.5, []), (-1e4, 0.6, ["scale"])])
def test_a_narrower_mask_is_not_accused(hidden: float, scale: float, accused: list[str], tmp_path: Path) -> None:
    onnx.save(masked(HALF, hidden, scale), tmp_path / "half.onnx")
    onnx.save(masked(FLOAT, float(np.finfo(np.float32).min)), tmp_path / "whole.onnx")
    rng = np.random.default_rng(0)
    keep = rng.random((4, 8)) < 0.6
    keep[:, 0] = True
    np.savez(tmp_path / "in.npz", x=rng.standard_normal((4, 8)).astype(np.float32), keep=keep)
    for observe in ("auto", "executed"):
        spec = CompareSpec(
            model=str(tmp_path / "half.onnx"), observe=observe, feeds=FeedSpec(files=[str(tmp_path / "in.npz")]),
            runners=[ORT, msgspec.structs.replace(ORT, model=str(tmp_path / "whole.onnx"))],
        )  # fmt: skip
        found = run_locate(LocateSpec(compare=spec))
        named = [suspect["node"] for suspect in found.suspects if suspect["diagnosis"] != "clean"]
        assert named[:1] == accused, (observe, found.suspects)
