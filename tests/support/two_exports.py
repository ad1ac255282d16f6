"""One network exported twice: no name in common, other operators, other layouts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.helper import make_node

Weights = Mapping[str, Any]
BATCH, LENGTH, WIDTH, HEADS = 3, 8, 16, 4
FEED = {"tokens": np.random.default_rng(5).standard_normal((BATCH, LENGTH, WIDTH)).astype(np.float32)}


def weights(**changed: Any) -> dict[str, Any]:
    """The network's weights; changed: factors of some."""
    rng = np.random.default_rng(1)
    found = {name: rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 4 for name in ("w1", "wq", "wo")}
    found |= {name: rng.standard_normal(WIDTH).astype(np.float32) / 4 for name in ("b1", "scale", "shift", "bo")}
    return {name: array * np.float32(changed.get(name, 1.0)) for name, array in found.items()}


def first(**changed: Any) -> onnx.ModelProto:
    """As one exporter writes it: MatMul and Add, LayerNormalization."""
    w = weights(**changed)
    nodes = [
        make_node("MatMul", ["tokens", "fc.w"], ["fc"], "/fc/MatMul"),
        make_node("Add", ["fc", "fc.b"], ["fc_b"], "/fc/Add"),
        make_node("Relu", ["fc_b"], ["act"], "/act/Relu"),
        make_node("LayerNormalization", ["act", "norm.s", "norm.b"], ["normed"], "/norm", epsilon=1e-5),
        make_node("MatMul", ["normed", "q.w"], ["q"], "/q/MatMul"),
        make_node("Reshape", ["q", "split"], ["q_split"], "/q/Reshape"),
        make_node("Transpose", ["q_split"], ["heads"], "/heads", perm=[0, 2, 1, 3]),
        make_node("Softmax", ["heads"], ["soft"], "/soft", axis=-1),
        make_node("Transpose", ["soft"], ["soft_back"], "/back", perm=[0, 2, 1, 3]),
        make_node("Reshape", ["soft_back", "joined"], ["mixed"], "/join"),
        make_node("Add", ["mixed", "normed"], ["residual"], "/residual"),
        make_node("MatMul", ["residual", "out.w"], ["out"], "/out/MatMul"),
        make_node("Add", ["out", "out.b"], ["logits"], "/out/Add"),
    ]
    own = {
        "fc.w": w["w1"], "fc.b": w["b1"], "norm.s": w["scale"], "norm.b": w["shift"], "q.w": w["wq"],
        "out.w": w["wo"], "out.b": w["bo"], "split": np.array([0, 0, HEADS, -1]), "joined": np.array([0, 0, -1]),
    }  # fmt: skip
    return _model(nodes, "tokens", "logits", own)


def second(**changed: Any) -> onnx.ModelProto:
    """As another one does: rows in one dimension, Gemm with turned weights, a norm in parts, the batch within."""
    w = weights(**changed)
    nodes = [
        make_node("Reshape", ["x", "rows"], ["1"]),
        make_node("Gemm", ["1", "W.1", "B.1"], ["2"], transB=1),
        make_node("Relu", ["2"], ["3"]),
        make_node("ReduceMean", ["3"], ["4"], axes=[-1]),
        make_node("Sub", ["3", "4"], ["5"]),
        make_node("Mul", ["5", "5"], ["6"]),
        make_node("ReduceMean", ["6"], ["7"], axes=[-1]),
        make_node("Add", ["7", "eps"], ["8"]),
        make_node("Sqrt", ["8"], ["9"]),
        make_node("Div", ["5", "9"], ["10"]),
        make_node("Mul", ["10", "S.1"], ["11"]),
        make_node("Add", ["11", "S.2"], ["12"]),
        make_node("MatMul", ["12", "W.2"], ["13"]),
        make_node("Reshape", ["13", "parts"], ["14"]),
        make_node("Transpose", ["14"], ["15"], perm=[1, 2, 0, 3]),
        make_node("Softmax", ["15"], ["16"], axis=3),
        make_node("Transpose", ["16"], ["17"], perm=[2, 0, 1, 3]),
        make_node("Reshape", ["17", "rows"], ["18"]),
        make_node("Add", ["12", "18"], ["19"]),
        make_node("Gemm", ["19", "W.3", "B.3"], ["20"]),
        make_node("Reshape", ["20", "whole"], ["result"]),
    ]
    own = {
        "W.1": np.ascontiguousarray(w["w1"].T), "B.1": w["b1"], "S.1": w["scale"], "S.2": w["shift"], "W.2": w["wq"],
        "W.3": w["wo"], "B.3": w["bo"], "eps": np.float32(1e-5), "rows": np.array([-1, WIDTH]),
        "parts": np.array([-1, LENGTH, HEADS, WIDTH // HEADS]), "whole": np.array([-1, LENGTH, WIDTH]),
    }  # fmt: skip
    return _model(nodes, "x", "result", own)


def _model(nodes: list[onnx.NodeProto], fed: str, given: str, own: Weights) -> onnx.ModelProto:
    shape = ["batch", LENGTH, WIDTH]
    graph = helper.make_graph(
        nodes, "export",
        [helper.make_tensor_value_info(fed, TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(given, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in own.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model
