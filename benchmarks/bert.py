"""A BERT-base-like encoder with random weights (12 layers, 768 wide, 12 heads), without torch."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH, HEADS, INNER, WORDS, LENGTH = 768, 12, 3072, 30522, 128


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.random = np.random.default_rng(0)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name + "_node", **attributes))
        return name

    def weight(self, values: Any) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def normal(self, *shape: int) -> str:
        return self.weight(self.random.standard_normal(shape, np.float32) * np.float32(0.02))

    def dense(self, x: str, rows: int, columns: int) -> str:
        return self.op("Add", self.op("MatMul", x, self.normal(rows, columns)), self.normal(columns))

    def norm(self, x: str) -> str:
        one, zero = self.weight(np.ones(WIDTH, np.float32)), self.weight(np.zeros(WIDTH, np.float32))
        return self.op("LayerNormalization", x, one, zero, axis=-1, epsilon=1e-12)

    def heads(self, x: str, order: tuple[int, ...]) -> str:
        split = self.op("Reshape", self.dense(x, WIDTH, WIDTH), self.weight(np.array([0, 0, HEADS, WIDTH // HEADS])))
        return self.op("Transpose", split, perm=order)

    def attention(self, x: str) -> str:
        q, k, v = self.heads(x, (0, 2, 1, 3)), self.heads(x, (0, 2, 3, 1)), self.heads(x, (0, 2, 1, 3))
        scale = self.weight(np.float32((WIDTH // HEADS) ** -0.5))
        weights = self.op("Softmax", self.op("Mul", self.op("MatMul", q, k), scale), axis=-1)
        joined = self.op("Transpose", self.op("MatMul", weights, v), perm=(0, 2, 1, 3))
        return self.dense(self.op("Reshape", joined, self.weight(np.array([0, 0, WIDTH]))), WIDTH, WIDTH)

    def gelu(self, x: str) -> str:
        erf = self.op("Erf", self.op("Div", x, self.weight(np.float32(2**0.5))))
        grown = self.op("Mul", x, self.op("Add", erf, self.weight(np.float32(1))))
        return self.op("Mul", grown, self.weight(np.float32(0.5)))


def bert_base(path: Path, layers: int = 12) -> Path:
    """Write the model (about 430 MB) unless it is there: `ids`, int64 (batch, tokens) -> `out`."""
    if path.exists():
        return path
    g = _Graph()
    words = g.op("Gather", g.normal(WORDS, WIDTH), "ids")
    x = g.norm(g.op("Add", words, g.normal(LENGTH, WIDTH)))
    for _ in range(layers):
        x = g.norm(g.op("Add", x, g.attention(x)))
        inner = g.gelu(g.dense(x, WIDTH, INNER))
        x = g.norm(g.op("Add", x, g.dense(inner, INNER, WIDTH)))
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch", LENGTH])
    g.nodes.append(helper.make_node("Identity", [x], ["out"], name="out_node"))
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, ["batch", LENGTH, WIDTH])
    graph = helper.make_graph(g.nodes, "bert", [ids], [out], g.weights)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path
