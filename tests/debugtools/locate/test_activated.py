"""Locating against a graph in which a product and its activation, or its bias, are one node."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support.locating import between

DEFAULTS = {"LeakyRelu": [0.01], "HardSigmoid": [0.2, 0.5]}
FEED = {"x": np.random.default_rng(1).standard_normal((1, 3, 8, 8)).astype(np.float32)}


def weights(prefix: str, factor: float) -> list[onnx.TensorProto]:
    """Of two convolutions; factor: of the first's."""
    random = np.random.default_rng(0)
    held = {"w": random.standard_normal((6, 3, 3, 3)) * factor, "v": random.standard_normal((6, 6, 3, 3))}
    return [numpy_helper.from_array(value.astype(np.float32), prefix + name) for name, value in held.items()]


def fused(activation: str) -> onnx.ModelProto:
    """Two convolutions with their activations, each as one node, and a maximum."""
    activated = {"domain": "com.microsoft", "kernel_shape": [3, 3]}
    more = {"activation_params": DEFAULTS[activation]} if activation in DEFAULTS else {}
    nodes = [
        helper.make_node("FusedConv", ["x", "fw"], ["f1"], activation="Relu", **activated),
        helper.make_node("FusedConv", ["f1", "fv"], ["f2"], activation=activation, **activated, **more),
        helper.make_node("MaxPool", ["f2"], ["y"], kernel_shape=[2, 2]),
    ]
    return network(nodes, weights("f", 1.0))


def plain(activation: str, *, factor: float = 1.0) -> onnx.ModelProto:
    """The same node by node, under other names."""
    nodes = [
        helper.make_node("Conv", ["x", "pw"], ["p1"], "first", kernel_shape=[3, 3]),
        helper.make_node("Relu", ["p1"], ["p2"], "relu"),
        helper.make_node("Conv", ["p2", "pv"], ["p3"], "second", kernel_shape=[3, 3]),
        helper.make_node(activation, ["p3"], ["p4"], "activation"),
        helper.make_node("MaxPool", ["p4"], ["y"], "pool", kernel_shape=[2, 2]),
    ]
    return network(nodes, weights("p", factor))


def network(nodes: list[onnx.NodeProto], held: list[onnx.TensorProto]) -> onnx.ModelProto:
    io = [helper.make_tensor_value_info("x", 1, [1, 3, 8, 8]), helper.make_tensor_value_info("y", 1, [1, 6, 3, 3])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], held)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("activation", ["LeakyRelu", "Tanh", "HardSigmoid"])
def test_behind_a_fault_the_product_alone_is_not_held_against_what_is_activated(
    activation: str, tmp_path: Path
) -> None:
    done = between(plain(activation, factor=1.3), fused(activation), tmp_path, FEED)
    accused = [row for row in done.suspects if row["diagnosis"] == "kernel"]
    assert len(accused) == 1 and "first" in {node["node"] for node in accused[0]["region"]}


@pytest.mark.parametrize("wrong", ["Softsign", "Abs"])
def test_a_wrong_activation_is_named_not_its_product(wrong: str, tmp_path: Path) -> None:
    done = between(plain(wrong), fused("Tanh"), tmp_path, FEED)
    assert len(done.suspects) == 1
    assert "activation" in {done.suspects[0]["node"], *(node["node"] for node in done.suspects[0]["region"])}


def dense(seed: int, *, whole: bool, factor: float = 1.0) -> onnx.ModelProto:
    """Three products with biases and residual sums, as Gemm (whole) or MatMul and Add. factor: of the second bias."""
    random, p = np.random.default_rng(seed), "g" if whole else "m"
    nodes, held, at = [], [], "x"
    for k in range(3):
        weight, bias = random.standard_normal((8, 8)) / 3, random.standard_normal(8) / 5 * (factor if k == 1 else 1)
        values = {f"{p}w{k}": weight, f"{p}b{k}": bias}
        held += [numpy_helper.from_array(value.astype(np.float32), name) for name, value in values.items()]
        if whole:
            nodes.append(helper.make_node("Gemm", [at, *values], [f"{p}a{k}"], f"gemm{k}"))
        else:
            nodes.append(helper.make_node("MatMul", [at, f"{p}w{k}"], [f"{p}p{k}"], f"product{k}"))
            nodes.append(helper.make_node("Add", [f"{p}p{k}", f"{p}b{k}"], [f"{p}a{k}"], f"bias{k}"))
        before, at = at, "y" if k == 2 else f"{p}t{k}"
        nodes.append(helper.make_node("Add", [before, f"{p}a{k}"], [f"{p}s{k}"], f"sum{k}"))
        nodes.append(helper.make_node("Tanh", [f"{p}s{k}"], [at], f"tanh{k}"))
    io = [helper.make_tensor_value_info(name, 1, [4, 8]) for name in "xy"]
    graph = helper.make_graph(nodes, "g", io[:1], io[1:], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("seed", "whole", "factor"), [(5, False, -1), (6, False, -1), (10, False, -1), (6, True, 3), (11, True, -1)]
)
def test_a_wrong_bias_is_held_against_the_product_that_has_taken_it_in(
    seed: int, whole: bool, factor: float, tmp_path: Path
) -> None:
    """The product before it may be nearer to that than the sum is."""
    feed = {"x": np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)}
    done = between(dense(seed, whole=whole, factor=factor), dense(seed, whole=not whole), tmp_path, feed)
    accused = [row for row in done.suspects if row["diagnosis"] == "kernel"]
    assert len(accused) == 1
    assert ("gemm1" if whole else "bias1") in {node["node"] for node in accused[0]["region"]}
