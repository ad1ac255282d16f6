"""A transformer encoder (opset 20) with the operators of several exporters, and places where FP16 overflows.

Every second layer has LayerNormalization as one operator and GELU as one, the others have them in pieces (Erf and
tanh forms). Layer 1 has a massive channel (squared beyond 65504 in its LayerNorm, cubed beyond it in its GELU), layer
2 a softmax in pieces that does not subtract the maximum (its exponentials and their sum go beyond 65504).
"""

import numpy as np
from onnx import TensorProto
from support.faults.zoo.build import Array, Builder, Sample

MASSIVE, SUNK = 1, 2  # layers
PEAK = 330.0  # the massive channel; its square is beyond 65504
LOGIT = 12.0  # what all logits of the unguarded softmax have in common; exp(12) is beyond 65504


def encoder(small: bool = False, seed: int = 21) -> Sample:
    """tokens [1, T] int64 to `hidden` and `logits`."""
    sizes = _Sizes(3, 32, 2, 12) if small else _Sizes(6, 128, 4, 48)
    build = Builder("encoder", 17, seed)
    table = build.weight("embeddings.word.weight", build.draw(500, sizes.width, scale=0.7))
    places = build.weight("embeddings.position.weight", build.draw(1, sizes.tokens, sizes.width, scale=0.3))
    words = build.node("Gather", "/embeddings/word/Gather", [table, "tokens"])
    x = build.node("Add", "/embeddings/Add", [words, places])
    for layer in range(sizes.layers):
        x = _layer(build, f"/layer.{layer}", x, layer, sizes)
    build.node("Identity", "/Identity", [x], "hidden")
    pooled = build.node("ReduceL2", "/pool/ReduceL2", [x], axes=[1], keepdims=0)
    build.gemm("/classifier", pooled, sizes.width, 6, "logits")
    shape = [1, sizes.tokens, sizes.width]
    model = build.model({"tokens": (TensorProto.INT64, [1, sizes.tokens])}, {"hidden": shape, "logits": [1, 6]})
    feed = np.random.default_rng(seed + 1).integers(0, 500, (1, sizes.tokens), np.int64)
    return Sample(model, {"tokens": feed})


class _Sizes:
    def __init__(self, layers: int, width: int, heads: int, tokens: int) -> None:
        self.layers, self.width, self.heads, self.tokens = layers, width, heads, tokens
        self.head = width // heads
        self.inner = 3 * width


def _layer(build: Builder, name: str, x: str, layer: int, sizes: _Sizes) -> str:
    normal = _norm(build, f"{name}/norm1", x, layer, sizes)
    x = build.node("Add", f"{name}/Add", [x, _attention(build, f"{name}/attention", normal, layer, sizes)])
    inner = build.linear(f"{name}/fc1", x, sizes.width, sizes.inner)
    if layer == MASSIVE:
        inner = build.node("Add", f"{name}/fc1/Add_1", [inner, build.weight(f"{name}.peak", _peak(sizes.inner, 60.0))])
    inner = (_erf_gelu, _tanh_gelu)[layer % 2](build, f"{name}/gelu", inner)
    out = build.linear(f"{name}/fc2", inner, sizes.inner, sizes.width)
    added = build.node("Add", f"{name}/Add_1", [x, out])
    if layer == MASSIVE:
        added = build.node("Add", f"{name}/Add_2", [added, build.weight(f"{name}.bias", _peak(sizes.width, PEAK))])
        scale = np.full(sizes.width, PEAK / np.sqrt(sizes.width))
        scale[_channel(sizes.width)] = 0.1
        return build.layer_norm(f"{name}/norm2", added, sizes.width, scale)
    return _norm(build, f"{name}/norm2", added, layer + 1, sizes)


def _channel(width: int) -> int:
    return width // 3


def _peak(width: int, height: float) -> Array:
    """A bias that is one massive channel."""
    bias = np.zeros(width)
    bias[_channel(width)] = height
    return bias


def _norm(build: Builder, name: str, x: str, layer: int, sizes: _Sizes) -> str:
    if layer % 2:
        return build.layer_norm(name, x, sizes.width)
    gain = build.weight(f"{name}.weight", build.draw(sizes.width, scale=0.1, around=1))
    bias = build.shift(f"{name}.bias", sizes.width)
    return build.node("LayerNormalization", f"{name}/LayerNormalization", [x, gain, bias], axis=-1, epsilon=1e-5)


def _attention(build: Builder, name: str, x: str, layer: int, sizes: _Sizes) -> str:
    joint = build.linear(f"{name}/qkv", x, sizes.width, 3 * sizes.width)
    thirds = build.weight("thirds", np.array([sizes.width] * 3))
    query, key, value = build.split("Split", f"{name}/Split", [joint, thirds], 3, axis=-1)
    query = _heads(build, f"{name}/query", query, [0, 2, 1, 3], sizes)
    key = _heads(build, f"{name}/key", key, [0, 2, 3, 1], sizes)
    value = _heads(build, f"{name}/value", value, [0, 2, 1, 3], sizes)
    product = build.node("MatMul", f"{name}/MatMul", [query, key])
    logits = build.node("Mul", f"{name}/Mul", [product, build.weight("scale", 1 / np.sqrt(sizes.head))])
    if layer == SUNK:
        weights = _bare_softmax(build, f"{name}/softmax", logits)
    else:
        weights = build.node("Softmax", f"{name}/Softmax", [logits], axis=-1)
    context = build.node("MatMul", f"{name}/MatMul_1", [weights, value])
    turned = build.node("Transpose", f"{name}/Transpose", [context], perm=[0, 2, 1, 3])
    merged = build.node("Reshape", f"{name}/Reshape", [turned, build.weight("merged", np.array([1, -1, sizes.width]))])
    return build.linear(f"{name}/out", merged, sizes.width, sizes.width)


def _heads(build: Builder, name: str, x: str, perm: list[int], sizes: _Sizes) -> str:
    shape = build.weight("heads", np.array([1, -1, sizes.heads, sizes.head]))
    return build.node(
        "Transpose", f"{name}/Transpose", [build.node("Reshape", f"{name}/Reshape", [x, shape])], perm=perm
    )


def _bare_softmax(build: Builder, name: str, logits: str) -> str:
    lifted = build.node("Add", f"{name}/Add", [logits, build.weight("lift", LOGIT)])
    powers = build.node("Exp", f"{name}/Exp", [lifted])
    total = build.node("ReduceSum", f"{name}/ReduceSum", [powers, build.weight("last", np.array([-1]))])
    return build.node("Div", f"{name}/Div", [powers, total])


def _erf_gelu(build: Builder, name: str, x: str) -> str:
    error = build.node(
        "Erf", f"{name}/Erf", [build.node("Div", f"{name}/Div", [x, build.weight("root", np.sqrt(2.0))])]
    )
    shifted = build.node("Add", f"{name}/Add", [error, build.weight("one", 1.0)])
    return build.node(
        "Mul", f"{name}/Mul_1", [build.node("Mul", f"{name}/Mul", [x, shifted]), build.weight("half", 0.5)]
    )


def _tanh_gelu(build: Builder, name: str, x: str) -> str:
    cube = build.node("Pow", f"{name}/Pow", [x, build.weight("three", 3.0)])
    small = build.node("Mul", f"{name}/Mul", [cube, build.weight("cubic", 0.044715)])
    inner = build.node("Add", f"{name}/Add", [x, small])
    scaled = build.node("Mul", f"{name}/Mul_1", [inner, build.weight("slope", np.sqrt(2 / np.pi))])
    gate = build.node("Add", f"{name}/Add_1", [build.node("Tanh", f"{name}/Tanh", [scaled]), build.weight("one", 1.0)])
    half = build.node("Mul", f"{name}/Mul_2", [x, build.weight("half", 0.5)])
    return build.node("Mul", f"{name}/Mul_3", [half, gate])
