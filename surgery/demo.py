"""The demo pair: a small transformer encoder in FP32 and its FP16 form, with realistic numerical problems.

Generated offline in seconds, reproducibly. The problems occur in real encoders too:

- layer 3, attention: queries and keys share a large component in one channel of each head, so that all logits
  lie near 900, where FP16's spacing is 0.5; the softmax turns these roundings into errors of its probabilities.
- layer 6, output LayerNorm: a massive activation in one channel (about 400) is squared beyond 65504, FP16's
  largest number; the variance becomes infinite and all tokens become equal.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.feeds.writer import save_feeds
from layerwise._tool.backends.filesystem.files import atomic_write
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.surgery.precision.nodes import emulate_precision

LAYERS, HIDDEN, HEADS, INNER, TOKENS, VOCABULARY, CLASSES = 8, 128, 4, 512, 64, 1000, 8
HEAD = HIDDEN // HEADS
LOGIT = 900.0  # added by the shared component to every attention logit of the affected layer
MASSIVE = 400.0
SHARP_LAYER, MASSIVE_LAYER = 3, 6

TROUBLE = {
    f"/encoder/layer.{SHARP_LAYER}/attention/self/Softmax": "leap",
    f"/encoder/layer.{MASSIVE_LAYER}/output/LayerNorm/Pow": "overflow",
}
"""Nodes that lose accuracy in FP16 by themselves, and how; the tests measure it by reference."""


class DemoPaths(NamedTuple):
    """The FP32 reference, its FP16 form (FP32 nodes between Cast round trips), a file with one feed dict."""

    fp32: Path
    fp16: Path
    inputs: Path


def make_demo(folder: Path) -> DemoPaths:
    """Write the demo pair and one feed dict to `folder`, about 14 MB. OSError as the file system gives it."""
    make_folder(folder)
    paths = DemoPaths(folder / "encoder_fp32.onnx", folder / "encoder_fp16.onnx", folder / "inputs.json")
    model = demo_model()
    atomic_write(paths.fp32, model.SerializeToString())
    atomic_write(paths.fp16, emulate_precision(model, "float16").SerializeToString())
    save_feeds(paths.inputs, [demo_feed()])
    return paths


def demo_feed() -> dict[str, Array]:
    """Return the demo's input: int64 token ids of shape [1, 64]."""
    return {"input_ids": np.random.default_rng(7).integers(0, VOCABULARY, (1, TOKENS), np.int64)}


def demo_model() -> onnx.ModelProto:
    """Return the FP32 encoder (opset 17): `input_ids` int64 [1, 64] to `last_hidden_state` and `logits`."""
    build = _Builder()
    hidden = _embeddings(build)
    for layer in range(LAYERS):
        hidden = _layer(build, f"/encoder/layer.{layer}", layer, hidden)
    build.node("Identity", "/encoder/Identity", [hidden], output="last_hidden_state")
    first = build.node("Gather", "/pooler/Gather", [hidden, build.constant("/pooler/first", np.int64(0))], axis=1)
    pooled = build.node("Tanh", "/pooler/activation/Tanh", [build.linear("/pooler/dense", first, HIDDEN, HIDDEN)])
    logits = build.linear("/classifier", pooled, HIDDEN, CLASSES)
    build.node("Identity", "/classifier/Identity", [logits], output="logits")
    return build.model()


class _Builder:
    """Nodes and weights under construction; node names are paths, as exporters write them."""

    def __init__(self) -> None:
        self.random = np.random.default_rng(20)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: dict[str, Array] = {}

    def node(self, op: str, name: str, inputs: Sequence[str], *, output: str = "", **attributes: Any) -> str:
        output = output or f"{name}_output_0"
        self.nodes.append(helper.make_node(op, inputs, [output], name, **attributes))
        return output

    def constant(self, name: str, value: Any) -> str:
        array = np.asarray(value)
        self.weights[name] = array.astype(np.int64 if array.dtype.kind == "i" else np.float32)
        return name

    def linear(
        self,
        name: str,
        x: str,
        rows: int,
        columns: int,
        *,
        weight: Array | None = None,
        bias: Array | None = None,
    ) -> str:
        drawn = self.random.standard_normal((rows, columns)) / np.sqrt(rows)
        offset = 0.02 * self.random.standard_normal(columns)
        parameter = name.lstrip("/").replace("/", ".")
        w = self.constant(f"{parameter}.weight", drawn if weight is None else weight)
        b = self.constant(f"{parameter}.bias", offset if bias is None else bias)
        return self.node("Add", f"{name}/Add", [b, self.node("MatMul", f"{name}/MatMul", [x, w])])

    def layer_norm(self, name: str, x: str, scale: Array | None = None) -> str:
        gain = 1 + 0.1 * self.random.standard_normal(HIDDEN)
        parameter = name.lstrip("/").replace("/", ".")
        mean = self.node("ReduceMean", f"{name}/ReduceMean", [x], axes=[-1])
        centred = self.node("Sub", f"{name}/Sub", [x, mean])
        square = self.node("Pow", f"{name}/Pow", [centred, self.constant("two", 2.0)])
        variance = self.node("ReduceMean", f"{name}/ReduceMean_1", [square], axes=[-1])
        shifted = self.node("Add", f"{name}/Add", [variance, self.constant("epsilon", 1e-5)])
        deviation = self.node("Sqrt", f"{name}/Sqrt", [shifted])
        normal = self.node("Div", f"{name}/Div", [centred, deviation])
        scaled = self.node(
            "Mul",
            f"{name}/Mul",
            [normal, self.constant(f"{parameter}.weight", gain if scale is None else gain * scale)],
        )
        bias = self.constant(f"{parameter}.bias", 0.02 * self.random.standard_normal(HIDDEN))
        return self.node("Add", f"{name}/Add_1", [scaled, bias])

    def model(self) -> onnx.ModelProto:
        graph = helper.make_graph(
            self.nodes,
            "encoder",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, TOKENS])],
            [
                helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [1, TOKENS, HIDDEN]),
                helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, CLASSES]),
            ],
            [numpy_helper.from_array(array, name) for name, array in self.weights.items()],
        )
        opsets = [helper.make_opsetid("", 17)]
        return helper.make_model(graph, producer_name="layerwise demo", ir_version=8, opset_imports=opsets)


def _embeddings(build: _Builder) -> str:
    table = build.constant("embeddings.word.weight", 0.5 * build.random.standard_normal((VOCABULARY, HIDDEN)))
    places = build.constant("embeddings.position.weight", 0.1 * build.random.standard_normal((1, TOKENS, HIDDEN)))
    words = build.node("Gather", "/embeddings/word/Gather", [table, "input_ids"])
    return build.layer_norm("/embeddings/LayerNorm", build.node("Add", "/embeddings/Add", [words, places]))


def _layer(build: _Builder, name: str, layer: int, hidden: str) -> str:
    context = _attention(build, f"{name}/attention/self", hidden, sharp=layer == SHARP_LAYER)
    projected = build.linear(f"{name}/attention/output/dense", context, HIDDEN, HIDDEN)
    added = build.node("Add", f"{name}/attention/output/Add", [projected, hidden])
    attended = build.layer_norm(f"{name}/attention/output/LayerNorm", added)
    inner = _gelu(build, f"{name}/intermediate", build.linear(f"{name}/intermediate/dense", attended, HIDDEN, INNER))
    bias, scale = _massive() if layer == MASSIVE_LAYER else (None, None)
    dense = build.linear(f"{name}/output/dense", inner, INNER, HIDDEN, bias=bias)
    return build.layer_norm(
        f"{name}/output/LayerNorm", build.node("Add", f"{name}/output/Add", [dense, attended]), scale
    )


def _massive() -> tuple[Array, Array]:
    """Return a bias with one massive channel, and a LayerNorm scale like that of a trained model."""
    bias, scale = np.zeros(HIDDEN), np.full(HIDDEN, MASSIVE / np.sqrt(HIDDEN))
    bias[17], scale[17] = MASSIVE, 0.1
    return bias, scale


def _attention(build: _Builder, name: str, hidden: str, *, sharp: bool) -> str:
    query, key = (_project(build, f"{name}/{part}", hidden, sharp=sharp) for part in ("query", "key"))
    value = _heads(build, f"{name}/value", build.linear(f"{name}/value", hidden, HIDDEN, HIDDEN), [0, 2, 1, 3])
    query = _heads(build, f"{name}/query", query, [0, 2, 1, 3])
    key = _heads(build, f"{name}/key", key, [0, 2, 3, 1])
    product = build.node("MatMul", f"{name}/MatMul", [query, key])
    logits = build.node("Div", f"{name}/Div", [product, build.constant("sqrt_head", np.sqrt(HEAD))])
    weights = build.node("Softmax", f"{name}/Softmax", [logits], axis=-1)
    context = build.node("MatMul", f"{name}/MatMul_1", [weights, value])
    turned = build.node("Transpose", f"{name}/Transpose", [context], perm=[0, 2, 1, 3])
    shape = build.constant("shape_hidden", np.array([1, TOKENS, HIDDEN]))
    return build.node("Reshape", f"{name}/Reshape", [turned, shape])


def _project(build: _Builder, name: str, hidden: str, *, sharp: bool) -> str:
    """Return queries or keys; in the affected layer each head's first channel is one large number for all tokens."""
    if not sharp:
        return build.linear(name, hidden, HIDDEN, HIDDEN)
    weight = build.random.standard_normal((HIDDEN, HIDDEN)) / np.sqrt(HIDDEN)
    bias = 0.02 * build.random.standard_normal(HIDDEN)
    weight[:, ::HEAD] = 0
    bias[::HEAD] = np.sqrt(LOGIT * np.sqrt(HEAD))
    return build.linear(name, hidden, HIDDEN, HIDDEN, weight=weight, bias=bias)


def _heads(build: _Builder, name: str, x: str, perm: list[int]) -> str:
    shape = build.constant("shape_heads", np.array([1, TOKENS, HEADS, HEAD]))
    return build.node(
        "Transpose", f"{name}/Transpose", [build.node("Reshape", f"{name}/Reshape", [x, shape])], perm=perm
    )


def _gelu(build: _Builder, name: str, x: str) -> str:
    scaled = build.node("Div", f"{name}/activation/Div", [x, build.constant("sqrt_two", np.sqrt(2.0))])
    error = build.node("Erf", f"{name}/activation/Erf", [scaled])
    shifted = build.node("Add", f"{name}/activation/Add", [error, build.constant("one", 1.0)])
    product = build.node("Mul", f"{name}/activation/Mul", [x, shifted])
    return build.node("Mul", f"{name}/activation/Mul_1", [product, build.constant("half", 0.5)])
