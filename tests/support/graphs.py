"""Small random models, and running one as it is."""

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

UNARY = ["Relu", "Sigmoid", "Tanh", "Neg", "Abs", "Identity"]
BINARY = ["Add", "Mul", "Sub", "MatMul", "Max"]
SIDE = 4


def random_model(seed: int, n_nodes: int = 25, *, shuffled: bool = False) -> onnx.ModelProto:
    """A model of float32 (4, 4) tensors with branches, a large weight, an If that captures, and unused tensors."""
    rng = np.random.default_rng(seed)
    tensors, nodes = ["x", "y", "w"], []
    for i in range(n_nodes):
        out = f"t{i}"
        if rng.random() < 0.1:
            nodes += _if(rng, tensors, out)
        elif rng.random() < 0.5:
            nodes.append(helper.make_node(str(rng.choice(UNARY)), [str(rng.choice(tensors))], [out], name=f"n{i}"))
        else:
            pair = [str(name) for name in rng.choice(tensors, 2)]
            nodes.append(helper.make_node(str(rng.choice(BINARY)), pair, [out], name=f"n{i}"))
        tensors.append(out)
    nodes.append(helper.make_node("MatMul", ["big", tensors[-1]], ["wide"], name="last"))
    outputs = ["wide", *{str(name) for name in rng.choice(tensors[3:], 2)}]
    if shuffled:
        rng.shuffle(nodes)  # type: ignore[arg-type]
    weights = [("w", rng.standard_normal((SIDE, SIDE))), ("big", rng.standard_normal((200, SIDE)))]
    graph = helper.make_graph(
        nodes,
        "random",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [SIDE, SIDE]) for name in ("x", "y")],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array.astype(np.float32), name) for name, array in weights],
    )
    return helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])


def _if(rng: np.random.Generator, tensors: list[str], out: str) -> list[onnx.NodeProto]:
    captured = [str(name) for name in rng.choice(tensors, 2)]
    info = [helper.make_tensor_value_info(f"{out}_body", TensorProto.FLOAT, None)]
    bodies = {
        f"{branch}_branch": helper.make_graph(
            [helper.make_node(op, captured, [f"{out}_body"])], f"{out}_{branch}", [], info
        )
        for branch, op in (("then", "Add"), ("else", "Sub"))
    }
    condition = helper.make_tensor(f"{out}_value", TensorProto.BOOL, [], [bool(rng.random() < 0.5)])
    return [
        helper.make_node("Constant", [], [f"{out}_if"], value=condition),
        helper.make_node("If", [f"{out}_if"], [out], name=f"{out}_node", **bodies),  # type: ignore[arg-type]
    ]


def feed_for(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal((SIDE, SIDE)).astype(np.float32) for name in ("x", "y")}


def run_whole(model: onnx.ModelProto, names: list[str], feed: dict[str, np.ndarray]) -> dict[str, Any]:
    """All `names` from one onnxruntime session with optimisation off."""
    import onnxruntime

    marked = onnx.ModelProto()
    marked.CopyFrom(model)
    del marked.graph.output[:]
    marked.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(marked.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return dict(zip(names, session.run(names, feed), strict=True))
