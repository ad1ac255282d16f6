"""Writes the models that the examples run: identity.onnx, dynamic_identity.onnx and mlp.onnx."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def identity(path, shape):
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"], name="copy")],
        "identity",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def mlp(path):
    random = np.random.default_rng(0)
    weights = {"w0": random.normal(size=(16, 32)), "w1": random.normal(size=(32, 4))}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
            helper.make_node("Relu", ["a"], ["b"], name="middle"),
            helper.make_node("MatMul", ["b", "w1"], ["y"], name="last"),
        ],
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])],
        [numpy_helper.from_array(value.astype(np.float32), name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


if __name__ == "__main__":
    identity("identity.onnx", [1, 1, 2, 2])
    identity("dynamic_identity.onnx", ["batch", 3, 28, 28])
    mlp("mlp.onnx")
