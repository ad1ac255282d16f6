"""Two layers of attention behind a mask of padding and of later positions, in the four ways exporters write masks."""

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from support.faults.zoo.build import Builder, Sample

MASKS = ("additive", "additive FP16", "where", "where -inf")
LAYERS, WIDTH, HEADS, TOKENS, VOCABULARY = 2, 48, 4, 16, 200
_LOWEST = {"additive": -3.4028234663852886e38, "additive FP16": -65504.0, "where": -3.4028234663852886e38}


def masked(kind: str, seed: int = 41) -> Sample:
    """tokens and attention_mask [2, 16] int64 to `hidden` [2, 16, 48]; the second row has a tail that is masked.

    In each layer /layer.N/MatMul are the scores, /layer.N/Mul the scaled ones, /layer.N/Mask those behind the mask.
    """
    build = Builder(kind, 18, seed)
    table = build.weight("embed.weight", build.draw(VOCABULARY, WIDTH, scale=0.7))
    x = build.node("Gather", "/embed/Gather", [table, "tokens"])
    mask = _mask(build, kind)
    for layer in range(LAYERS):
        x = _layer(build, f"/layer.{layer}", x, mask, kind)
    build.node("Identity", "/Identity", [x], "hidden")
    shape = [2, TOKENS]
    inputs = dict.fromkeys(("tokens", "attention_mask"), (TensorProto.INT64, shape))
    model = build.model(inputs, {"hidden": [2, TOKENS, WIDTH]})
    random = np.random.default_rng(seed + 1)
    kept = np.ones(shape, np.int64)
    kept[1, -5:] = 0
    feed = {"tokens": random.integers(0, VOCABULARY, shape, np.int64), "attention_mask": kept}
    return Sample(_halved(model) if kind.endswith("FP16") else model, feed)


def _mask(build: Builder, kind: str) -> str:
    """What is added to the scores, or which of them stay."""
    later = build.weight("later", np.tril(np.ones((1, 1, TOKENS, TOKENS), np.float32)))
    floats = build.node("Cast", "/mask/Cast", ["attention_mask"], to=TensorProto.FLOAT)
    wide = build.node("Unsqueeze", "/mask/Unsqueeze", [floats, build.weight("axes_1_2", np.array([1, 2]))])
    both = build.node("Mul", "/mask/Mul", [wide, later])
    if kind.startswith("where"):
        return build.node("Cast", "/mask/Cast_1", [both], to=TensorProto.BOOL)
    turned = build.node("Sub", "/mask/Sub", [build.weight("one", 1.0), both])
    return build.node("Mul", "/mask/Mul_1", [turned, build.weight("lowest", _LOWEST[kind])])


def _layer(build: Builder, name: str, x: str, mask: str, kind: str) -> str:
    normal = _norm(build, f"{name}/norm1", x)
    query, key, value = (_heads(build, f"{name}/{part}", normal, part) for part in "qkv")
    scores = build.node("MatMul", f"{name}/MatMul", [query, key])
    scaled = build.node("Mul", f"{name}/Mul", [scores, build.weight("scale", (WIDTH // HEADS) ** -0.5)])
    if kind.startswith("where"):
        never = build.weight("never", _LOWEST.get(kind, -np.inf))
        behind = build.node("Where", f"{name}/Mask", [mask, scaled, never])
    else:
        behind = build.node("Add", f"{name}/Mask", [scaled, mask])
    weights = build.node("Softmax", f"{name}/Softmax", [behind], axis=-1)
    context = build.node("MatMul", f"{name}/MatMul_1", [weights, value])
    turned = build.node("Transpose", f"{name}/Transpose", [context], perm=[0, 2, 1, 3])
    merged = build.node("Reshape", f"{name}/Reshape", [turned, build.weight("merged", np.array([0, 0, WIDTH]))])
    x = build.node("Add", f"{name}/Add", [x, build.linear(f"{name}/out", merged, WIDTH, WIDTH)])
    inner = build.linear(f"{name}/fc1", _norm(build, f"{name}/norm2", x), WIDTH, 2 * WIDTH)
    out = build.linear(f"{name}/fc2", build.node("Tanh", f"{name}/Tanh", [inner]), 2 * WIDTH, WIDTH)
    return build.node("Add", f"{name}/Add_1", [x, out])


def _heads(build: Builder, name: str, x: str, part: str) -> str:
    shape = build.weight("heads", np.array([0, 0, HEADS, WIDTH // HEADS]))
    apart = build.node("Reshape", f"{name}/Reshape", [build.linear(name, x, WIDTH, WIDTH), shape])
    return build.node("Transpose", f"{name}/Transpose", [apart], perm=[0, 2, 3, 1] if part == "k" else [0, 2, 1, 3])


def _norm(build: Builder, name: str, x: str) -> str:
    gain, bias = (
        build.weight(f"{name}.weight", build.draw(WIDTH, scale=0.1, around=1)),
        build.shift(f"{name}.bias", WIDTH),
    )
    return build.node("LayerNormalization", f"{name}/LayerNormalization", [x, gain, bias], axis=-1)


def _halved(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same in FP16, weights and outputs too."""
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float16), tensor.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if (node.op_type, attribute.i) == ("Cast", TensorProto.FLOAT):
                attribute.i = TensorProto.FLOAT16
    for value in model.graph.output:
        value.type.tensor_type.elem_type = TensorProto.FLOAT16
    return model
