"""Small ONNX models that tests are made from."""

from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.models import node_models

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
FLOAT = TensorProto.FLOAT


def mlp(width: int = 64, layers: int = 3, seed: int = 0) -> onnx.ModelProto:
    """x [N, width] through Gemm and Relu layers; weights (over 1 KiB from width 16 on) and biases as initializers."""
    random = np.random.default_rng(seed)
    nodes, weights, name = [], [], "x"
    for i in range(layers):
        weights.append(numpy_helper.from_array(random.standard_normal((width, width), np.float32), f"w{i}"))
        weights.append(numpy_helper.from_array(random.standard_normal(width, np.float32), f"b{i}"))
        nodes.append(helper.make_node("Gemm", [name, f"w{i}", f"b{i}"], [f"g{i}"], name=f"gemm_{i}"))
        nodes.append(helper.make_node("Relu", [f"g{i}"], [f"r{i}"], name=f"relu_{i}"))
        name = f"r{i}"
    return model(nodes, ["x"], [name], weights, shape=["N", width])


def model(
    nodes: list[onnx.NodeProto],
    inputs: list[str],
    outputs: list[str],
    initializers: list[onnx.TensorProto] | None = None,
    shape: list[int | str] | None = None,
) -> onnx.ModelProto:
    """A float32 model of opset 17 whose inputs and outputs all have one shape."""
    values = [[helper.make_tensor_value_info(n, FLOAT, shape) for n in names] for names in (inputs, outputs)]
    graph = helper.make_graph(nodes, "sample", *values, initializers or [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def if_model() -> onnx.ModelProto:
    """If whose branches capture x and an initializer, one of them over 1 KiB and one inside the branch."""
    weight = numpy_helper.from_array(np.arange(512, dtype=np.float32), "w")
    inner = numpy_helper.from_array(np.full(512, 2, np.float32), "inner")
    out = [helper.make_tensor_value_info("branch_out", FLOAT, [512])]
    then = helper.make_graph([helper.make_node("Add", ["x", "w"], ["branch_out"], name="then_add")], "then", [], out)
    other = helper.make_graph(
        [helper.make_node("Mul", ["x", "inner"], ["branch_out"], name="else_mul")], "else", [], out, [inner]
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["total"], name="sum", keepdims=0),
        helper.make_node("Greater", ["total", "zero"], ["test"], name="greater"),
        helper.make_node("If", ["test"], ["y"], name="choose", then_branch=then, else_branch=other),
    ]
    zero = numpy_helper.from_array(np.zeros((), np.float32), "zero")
    return model(nodes, ["x"], ["y"], [weight, zero], shape=[512])


@cache
def node_test_models() -> list[tuple[str, bytes]]:
    """Name and bytes of every model of onnx's node tests."""
    return [(name, model.SerializeToString()) for name, model in node_models().items()]
