"""A decoder: embeddings, causal mask by Where, rotary positions, RMS norms, grouped heads, gated inner layers."""

import numpy as np
from onnx import TensorProto
from support.faults.zoo.build import Builder, Sample

VOCABULARY = 300


def decoder(small: bool = False, seed: int = 31) -> Sample:
    """tokens [1, T] int64 to `logits` [1, T, 300]; the shapes are worked out in the graph."""
    layers, width, heads, tokens = (2, 32, 4, 10) if small else (6, 96, 6, 40)
    build = Builder("decoder", 17, seed)
    table = build.weight("embed.weight", build.draw(VOCABULARY, width, scale=0.8))
    x = build.node("Gather", "/embed/Gather", [table, "tokens"])
    kept, cosines, sines = _positions(build, width // heads)
    for layer in range(layers):
        name = f"/layers.{layer}"
        normal = _rms(build, f"{name}/norm1", x, width)
        mixed = _attention(build, f"{name}/attention", normal, width, heads, (kept, cosines, sines))
        x = build.node("Add", f"{name}/Add", [x, mixed])
        x = build.node(
            "Add", f"{name}/Add_1", [x, _gated(build, f"{name}/mlp", _rms(build, f"{name}/norm2", x, width), width)]
        )
    head = build.node("Transpose", "/head/Transpose", [table], perm=[1, 0])
    build.node("MatMul", "/head/MatMul", [_rms(build, "/norm", x, width), head], "logits")
    model = build.model({"tokens": (TensorProto.INT64, [1, tokens])}, {"logits": [1, tokens, VOCABULARY]})
    feed = np.random.default_rng(seed + 1).integers(0, VOCABULARY, (1, tokens), np.int64)
    return Sample(model, {"tokens": feed})


def _positions(build: Builder, head: int) -> tuple[str, str, str]:
    """The causal mask [T, T], and cosines and sines [T, head], from the length of `tokens`."""
    shape = build.node("Shape", "/positions/Shape", ["tokens"])
    length = build.node("Gather", "/positions/Gather", [shape, build.weight("place_1", np.int64(1))], axis=0)
    zero, one = build.weight("zero_i", np.int64(0)), build.weight("one_i", np.int64(1))
    steps = build.node("Range", "/positions/Range", [zero, length, one])
    rows = build.node("Unsqueeze", "/positions/Unsqueeze", [steps, build.weight("axis_1", np.array([1]))])
    columns = build.node("Unsqueeze", "/positions/Unsqueeze_1", [steps, build.weight("axis_0", np.array([0]))])
    kept = build.node("LessOrEqual", "/positions/LessOrEqual", [columns, rows])
    moments = build.node("Cast", "/positions/Cast", [rows], to=TensorProto.FLOAT)
    speeds = build.weight("speeds", 100.0 ** -(np.arange(0, head, 2) / head)[None, :])
    angles = build.node("MatMul", "/positions/MatMul", [moments, speeds])
    both = build.node("Concat", "/positions/Concat", [angles, angles], axis=-1)
    return kept, build.node("Cos", "/positions/Cos", [both]), build.node("Sin", "/positions/Sin", [both])


def _rms(build: Builder, name: str, x: str, width: int) -> str:
    square = build.node("Pow", f"{name}/Pow", [x, build.weight("two", 2.0)])
    mean = build.node("ReduceMean", f"{name}/ReduceMean", [square], axes=[-1])
    root = build.node("Sqrt", f"{name}/Sqrt", [build.node("Add", f"{name}/Add", [mean, build.weight("epsilon", 1e-6)])])
    normal = build.node("Mul", f"{name}/Mul", [x, build.node("Reciprocal", f"{name}/Reciprocal", [root])])
    return build.node(
        "Mul", f"{name}/Mul_1", [build.weight(f"{name}.weight", build.draw(width, scale=0.1, around=1)), normal]
    )


def _attention(build: Builder, name: str, x: str, width: int, heads: int, positions: tuple[str, str, str]) -> str:
    kept, cosines, sines = positions
    head = width // heads
    query = _rotate(build, f"{name}/q", _heads(build, f"{name}/q", x, width, heads, head), head, cosines, sines)
    key = _rotate(build, f"{name}/k", _heads(build, f"{name}/k", x, width, heads // 2, head), head, cosines, sines)
    value = _repeat(build, f"{name}/v", _heads(build, f"{name}/v", x, width, heads // 2, head), heads, head)
    key = _repeat(build, f"{name}/k", key, heads, head)
    turned = build.node("Transpose", f"{name}/k/Transpose_1", [key], perm=[0, 1, 3, 2])
    product = build.node("MatMul", f"{name}/MatMul", [query, turned])
    scaled = build.node("Div", f"{name}/Div", [product, build.weight("root_head", np.sqrt(head))])
    masked = build.node("Where", f"{name}/Where", [kept, scaled, build.weight("never", -1e9)])
    weights = build.node("Softmax", f"{name}/Softmax", [masked], axis=-1)
    context = build.node("MatMul", f"{name}/MatMul_1", [weights, value])
    joined = build.node("Transpose", f"{name}/Transpose", [context], perm=[0, 2, 1, 3])
    shape = build.weight("joined", np.array([0, 0, width]))
    return build.linear(f"{name}/o", build.node("Reshape", f"{name}/Reshape", [joined, shape]), width, width, 0.5)


def _heads(build: Builder, name: str, x: str, width: int, heads: int, head: int) -> str:
    shape = build.weight(f"heads_{heads}", np.array([0, 0, heads, head]))
    apart = build.node("Reshape", f"{name}/Reshape", [build.linear(name, x, width, heads * head), shape])
    return build.node("Transpose", f"{name}/Transpose", [apart], perm=[0, 2, 1, 3])


def _rotate(build: Builder, name: str, x: str, head: int, cosines: str, sines: str) -> str:
    axis, half = build.weight("axis_3", np.array([3])), build.weight("half_head", np.array([head // 2]))
    zero, end = build.weight("start", np.array([0])), build.weight("end", np.array([2**31]))
    low = build.node("Slice", f"{name}/Slice", [x, zero, half, axis])
    high = build.node("Slice", f"{name}/Slice_1", [x, half, end, axis])
    turned = build.node("Concat", f"{name}/Concat", [build.node("Neg", f"{name}/Neg", [high]), low], axis=-1)
    straight = build.node("Mul", f"{name}/Mul", [x, cosines])
    return build.node("Add", f"{name}/Add_1", [straight, build.node("Mul", f"{name}/Mul_1", [turned, sines])])


def _repeat(build: Builder, name: str, x: str, heads: int, head: int) -> str:
    """Each head of keys and values serves two queries."""
    apart = build.node("Unsqueeze", f"{name}/Unsqueeze", [x, build.weight("axis_2", np.array([2]))])
    twice = build.node("Expand", f"{name}/Expand", [apart, build.weight("twice", np.array([1, 1, 2, 1, 1]))])
    shape = build.weight("grouped", np.array([1, heads, -1, head]))
    return build.node("Reshape", f"{name}/Reshape_1", [twice, shape])


def _gated(build: Builder, name: str, x: str, width: int) -> str:
    gate = build.linear(f"{name}/gate", x, width, 2 * width)
    swish = build.node("Mul", f"{name}/Mul", [gate, build.node("Sigmoid", f"{name}/Sigmoid", [gate])])
    inner = build.node("Mul", f"{name}/Mul_1", [swish, build.linear(f"{name}/up", x, width, 2 * width)])
    return build.linear(f"{name}/down", inner, 2 * width, width, 0.5)
