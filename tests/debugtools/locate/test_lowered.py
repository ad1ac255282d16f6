"""An FP16 form of a clean model accuses nobody: not its mask's lowest number, nor the step on which it leaves FP16."""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.locating import between

WIDTH = 16


def attention(kind: int, *, mask: float | None = None) -> onnx.ModelProto:
    """A product, a mask, Softmax, a product, of FP32 or FP16, with FP32 in and out. mask: not the lowest number."""
    dtype, random = onnx.helper.tensor_dtype_to_np_dtype(kind), np.random.default_rng(0)
    lowest = float(np.finfo(dtype).min) if mask is None else mask
    weights = {name: random.standard_normal((WIDTH, WIDTH)).astype(dtype) for name in ("q", "v")}
    weights["hides"] = np.triu(np.ones((WIDTH, WIDTH), bool), 1)
    low = kind != TensorProto.FLOAT
    nodes = [
        *([helper.make_node("Cast", ["x"], ["h"], "in", to=kind)] if low else []),
        helper.make_node("MatMul", ["h" if low else "x", "q"], ["a"], "first"),
        helper.make_node("Constant", [], ["c"], "lowest", value=numpy_helper.from_array(np.array(lowest, dtype))),
        helper.make_node("Where", ["hides", "c", "a"], ["b"], "mask"),
        helper.make_node("Softmax", ["b"], ["p"], "softmax", axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["z" if low else "y"], "second"),
        *([helper.make_node("Cast", ["z"], ["y"], "out", to=TensorProto.FLOAT)] if low else []),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [WIDTH, WIDTH]) for name in "xy"]
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_clean_half_form_accuses_nobody_whichever_side_it_is(tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((WIDTH, WIDTH)).astype(np.float32)}
    half, full = attention(TensorProto.FLOAT16), attention(TensorProto.FLOAT)
    for number, (suspect, reference) in enumerate([(full, half), (half, full)]):
        (folder := tmp_path / str(number)).mkdir()
        found = between(suspect, reference, folder, feed)
        assert [row["node"] for row in found.suspects if row["diagnosis"] != "clean"] == []


def test_a_mask_that_hides_nothing_is_named(tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((WIDTH, WIDTH)).astype(np.float32)}
    found = between(attention(TensorProto.FLOAT16, mask=-1.0), attention(TensorProto.FLOAT), tmp_path, feed)
    assert found.suspects[0]["node"] in ("lowest", "mask")
