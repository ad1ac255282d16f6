"""What onnxruntime wrote as one operation has the end of the other side's region as its counterpart, wrong or not."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.aligning import side

from layerwise._tool.debugtools.align.match import align

WIDTH = 8


def attention(*, fused: bool, scale: float = 0.25) -> onnx.ModelProto:
    """Scores of rows among each other: scaled, a bias of weights alone added, Softmax; fused: scaled by FusedMatMul."""
    random, p = np.random.default_rng(0), "f" if fused else "u"
    weights = {f"{p}q": random.standard_normal((WIDTH, WIDTH)), f"{p}k": random.standard_normal((WIDTH, WIDTH))}
    weights |= {f"{p}v": random.standard_normal((WIDTH, WIDTH)), f"{p}b": random.standard_normal((WIDTH, WIDTH))}
    if not fused:
        weights[f"{p}scale"] = np.array(scale)
    nodes = [
        helper.make_node("Tanh", ["x"], [f"{p}h"]),
        helper.make_node("MatMul", [f"{p}h", f"{p}q"], [f"{p}1"]),
        helper.make_node("MatMul", [f"{p}h", f"{p}k"], [f"{p}2"]),
        helper.make_node("Transpose", [f"{p}2"], [f"{p}3"], perm=[1, 0]),
        helper.make_node("FusedMatMul", [f"{p}1", f"{p}3"], [f"{p}s"], domain="com.microsoft", alpha=0.25)
        if fused
        else helper.make_node("MatMul", [f"{p}1", f"{p}3"], [f"{p}m"]),
        *([] if fused else [helper.make_node("Mul", [f"{p}m", f"{p}scale"], [f"{p}s"])]),
        helper.make_node("Sin", [f"{p}b"], [f"{p}bias"]),
        helper.make_node("Add", [f"{p}s", f"{p}bias"], [f"{p}a"]),
        helper.make_node("Softmax", [f"{p}a"], [f"{p}p"], axis=-1),
        helper.make_node("MatMul", [f"{p}p", f"{p}v"], ["y"]),
    ]
    io = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [WIDTH, WIDTH]) for name in "xy"]
    held = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph(nodes, "g", io[:1], io[1:], held), opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("scale", [0.25, 0.5, 0.0])
def test_a_scaled_product_belongs_to_the_fused_one_and_the_plain_product_to_none(scale: float, tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((WIDTH, WIDTH)).astype(np.float32)
    mine, theirs = (
        side(model, x, tmp_path)[0] for model in (attention(fused=False, scale=scale), attention(fused=True))
    )
    pairs = {pair.tensor: pair.other for pair in align(mine, theirs).pairs}
    assert "um" not in pairs
    assert [pairs.get(name) for name in ("us", "ua", "up")] == ["fs", "fa", "fp"]


def rectified(*, quantised: bool) -> onnx.ModelProto:
    """A sum, a Relu and a product; quantised: the Relu left out, since the codes reach nothing below 0."""
    p = "q" if quantised else "f"
    weights = {
        f"{p}b": np.array([[-0.04, -0.26, -0.88, 1.57]]),
        f"{p}w": np.random.default_rng(0).standard_normal((4, 8)),
    }
    held = [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()]
    held += [numpy_helper.from_array(np.float32(1.7 / 255), "step"), numpy_helper.from_array(np.uint8(0), "zero")]
    nodes = [
        helper.make_node("Add", ["x", f"{p}b"], [f"{p}a"]),
        *(
            [
                helper.make_node("QuantizeLinear", ["qa", "step", "zero"], ["codes"]),
                helper.make_node("DequantizeLinear", ["codes", "step", "zero"], ["qr"]),
            ]
            if quantised
            else [helper.make_node("Relu", ["fa"], ["fr"])]
        ),
        helper.make_node("MatMul", [f"{p}r", f"{p}w"], ["y"]),
    ]
    io = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, s]) for n, s in (("x", 4), ("y", 8))]
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_relu_that_a_quantiser_left_out_belongs_to_what_its_codes_become(tmp_path: Path) -> None:
    x = np.array([[0.003, -0.003, 0.01, 0.06]], np.float32)
    mine, _ = side(rectified(quantised=False), x * 0, tmp_path)
    theirs, _ = side(rectified(quantised=True), x, tmp_path)
    pairs = {pair.tensor: pair.other for pair in align(mine, theirs).pairs}
    assert (pairs["fa"], pairs["fr"]) == ("qa", "qr")
