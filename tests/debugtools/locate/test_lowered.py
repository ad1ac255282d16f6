"""An FP16 form of a clean model accuses nobody: not its mask's lowest number, nor the step on which it leaves FP16."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support.locating import ORT, REFERENCE, between

from layerwise._tool.backends.specs import RunnerSpec

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


@pytest.mark.parametrize(("kind", "other"), [(TensorProto.BFLOAT16, REFERENCE), (TensorProto.FLOAT, ORT)])
def test_a_mask_of_infinity_and_one_of_the_lowest_number_hide_alike(
    kind: int, other: RunnerSpec, tmp_path: Path
) -> None:
    """As where a conversion to bfloat16 rounds FP32's lowest number, or of two ways to compute an attention."""
    feed = {"x": np.random.default_rng(1).standard_normal((WIDTH, WIDTH)).astype(np.float32)}
    endless, full = attention(kind, mask=-np.inf), attention(TensorProto.FLOAT)
    for number, runners in enumerate([(other, ORT), (ORT, other)]):
        (folder := tmp_path / str(number)).mkdir()
        models = (endless, full) if number == 0 else (full, endless)
        found = between(*models, folder, feed, runners=runners)
        assert [row["node"] for row in found.suspects if row["diagnosis"] != "clean"] == []


def bucket(low: bool, *, up: bool = False) -> onnx.ModelProto:
    """A whole number of a logarithm, as of a distance between positions; up: the next one."""
    kind, own = (TensorProto.FLOAT16, "low") if low else (TensorProto.FLOAT, "full")
    width = onnx.helper.tensor_dtype_to_np_dtype(kind)
    held = [numpy_helper.from_array(np.full(64, number, width), f"{own}{number}") for number in (2, 3)]
    nodes = [
        helper.make_node("Cast", ["x"], [f"{own}h"], to=kind),
        helper.make_node("Log", [f"{own}h"], [f"{own}l"]),
        helper.make_node("Mul", [f"{own}l", f"{own}3"], [f"{own}m"]),
        helper.make_node("Div", [f"{own}m", f"{own}2"], [f"{own}d"]),
        *([helper.make_node("Ceil", [f"{own}d"], [f"{own}e"])] if up else []),
        helper.make_node("Cast", [f"{own}e" if up else f"{own}d"], ["y"], "number", to=TensorProto.INT64),
    ]
    values = [helper.make_tensor_value_info(name, TensorProto.INT64, [64]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_number_at_the_edge_of_a_step_is_no_fault_of_fp16_and_another_step_is(tmp_path: Path) -> None:
    """1.5 log 28 is 4.998, 1.5 log 207 7.9990; FP16 makes other numbers of both."""
    feed = {"x": np.concatenate([[28, 207], np.arange(1, 63)])}
    for number, up in enumerate((False, True)):
        (folder := tmp_path / str(number)).mkdir()
        found = between(bucket(True, up=up), bucket(False), folder, feed, align="names", runners=(REFERENCE, ORT))
        assert [row["node"] for row in found.suspects if row["diagnosis"] == "kernel"] == ["number"] * up


def test_a_mask_that_hides_nothing_is_named(tmp_path: Path) -> None:
    feed = {"x": np.random.default_rng(1).standard_normal((WIDTH, WIDTH)).astype(np.float32)}
    found = between(attention(TensorProto.FLOAT16, mask=-1.0), attention(TensorProto.FLOAT), tmp_path, feed)
    assert found.suspects[0]["node"] in ("lowest", "mask")


def chain(kind: int, *ops: tuple[str, dict[str, float]]) -> onnx.ModelProto:
    """Operators one after another in FP32 or FP16, each with its constants as weights; a last Cast to FP32."""
    dtype, low = onnx.helper.tensor_dtype_to_np_dtype(kind), kind != TensorProto.FLOAT
    nodes, held, last = [], [], "x"
    if low:
        nodes, last = [helper.make_node("Cast", ["x"], ["h"], "in", to=kind)], "h"
    for i, (op, constants) in enumerate(ops):
        with np.errstate(over="ignore"):
            values = {f"{name}{i}": np.asarray(value, dtype) for name, value in constants.items()}
        held += [numpy_helper.from_array(np.nan_to_num(value), name) for name, value in values.items()]
        nodes.append(helper.make_node(op, [last, *values], [f"t{i}"], f"n{i}"))
        last = f"t{i}"
    nodes.append(helper.make_node("Cast", [last], ["y"], "out", to=TensorProto.FLOAT))
    io = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xy"]
    io[0].type.tensor_type.shape.CopyFrom(helper.make_tensor_value_info("x", 1, [WIDTH, WIDTH]).type.tensor_type.shape)
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("ops", "low", "high", "wrong"),
    [
        ([("Mul", {"c": 1.5}), ("Sin", {})], 100, 900, []),
        ([("Mul", {"c": 1.5}), ("ArgMax", {})], 1, 1.0005, []),
        ([("Mul", {"c": 1e5}), ("Relu", {}), ("Mul", {"c": 1e-3})], 0.5, 0.9, ["n0"]),
    ],
)
def test_a_node_is_not_accused_for_numbers_that_only_the_other_type_holds(
    ops: list[tuple[str, dict[str, float]]], low: float, high: float, wrong: list[str], tmp_path: Path
) -> None:
    """The sine of many turns, a choice between near values, and what would overflow behind a constant that did."""
    feed = {"x": np.random.default_rng(1).uniform(low, high, (WIDTH, WIDTH)).astype(np.float32)}
    found = between(chain(TensorProto.FLOAT16, *ops), chain(TensorProto.FLOAT, *ops), tmp_path, feed)
    assert [each["node"] for each in found.suspects if each["diagnosis"] != "ill-conditioned"] == wrong
