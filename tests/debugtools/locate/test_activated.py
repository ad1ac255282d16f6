"""Locating against a graph in which onnxruntime made a product and its activation one node."""

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
