"""Convolutional networks: one with residual, gated and upward branches, one that is Inception-like."""

import numpy as np
from onnx import TensorProto
from support.faults.zoo.build import Builder, Sample


def cnn(small: bool = False, seed: int = 11) -> Sample:
    """Residual blocks with squeeze-and-excitation, dense concatenations, a way down and up again."""
    side, widths = (16, (8, 16)) if small else (64, (16, 32, 64))
    build = Builder("cnn", 17, seed)
    x = build.batch_norm("/stem/bn", build.conv("/stem", "image", 3, widths[0]), widths[0])
    x = build.node("LeakyRelu", "/stem/LeakyRelu", [x], alpha=0.1)
    into = widths[0]
    for stage, width in enumerate(widths):
        x = _residual(build, f"/stage.{stage}/0", x, into, width, stride=1 if stage == 0 else 2)
        x = _residual(build, f"/stage.{stage}/1", x, width, width, stride=1)
        x = _dense(build, f"/stage.{stage}/2", x, width)
        into = 2 * width
    x = _around(build, "/neck", x, into)
    pooled = build.node("GlobalAveragePool", "/head/GlobalAveragePool", [x])
    build.gemm("/head/fc", build.node("Flatten", "/head/Flatten", [pooled]), into, 10, "logits")
    model = build.model({"image": (TensorProto.FLOAT, [1, 3, side, side])}, {"logits": [1, 10]})
    return Sample(model, {"image": _image(side, seed)})


def inception(small: bool = False, seed: int = 12) -> Sample:
    """Blocks of four parallel branches; the last one pools; two heads."""
    side, width, blocks = (12, 8, 1) if small else (32, 24, 5)
    build = Builder("inception", 13, seed)
    x = build.node("Relu", "/stem/Relu", [build.conv("/stem", "image", 3, width)])
    x = build.node("LRN", "/stem/LRN", [x], size=5, alpha=1e-2, beta=0.75, bias=1.0)
    for block in range(blocks):
        x = _branches(build, f"/mixed.{block}", x, 4 * width if block else width, width)
        if block == blocks // 2:
            x = build.node("MaxPool", "/down/MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = build.node("GlobalAveragePool", "/pool/GlobalAveragePool", [x])
    x = build.node("Reshape", "/pool/Reshape", [x, build.weight("flat", np.array([1, -1]))])
    build.gemm("/logits", x, 4 * width, 20, "logits")
    hidden = build.node("Elu", "/aux/Elu", [build.gemm("/aux/0", x, 4 * width, width)], alpha=0.8)
    score = build.node("HardSigmoid", "/aux/HardSigmoid", [build.gemm("/aux/1", hidden, width, 5)], alpha=0.3, beta=0.4)
    build.node("Selu", "/aux/Selu", [score], "scores")
    outputs = {"logits": [1, 20], "scores": [1, 5]}
    model = build.model({"image": (TensorProto.FLOAT, [1, 3, side, side])}, outputs)
    return Sample(model, {"image": _image(side, seed)})


def _residual(build: Builder, name: str, x: str, into: int, out: int, stride: int) -> str:
    inner = build.batch_norm(f"{name}/bn1", build.conv(f"{name}/conv1", x, into, out, stride=stride), out)
    inner = build.node("Relu", f"{name}/Relu", [inner])
    inner = build.batch_norm(f"{name}/bn2", build.conv(f"{name}/conv2", inner, out, out), out)
    gated = build.node("Mul", f"{name}/se/Mul", [inner, _gate(build, f"{name}/se", inner, out)])
    skipped = build.conv(f"{name}/skip", x, into, out, (1, 1), stride)
    return build.node("Relu", f"{name}/Relu_1", [build.node("Add", f"{name}/Add", [gated, skipped])])


def _gate(build: Builder, name: str, x: str, channels: int) -> str:
    pooled = build.node("GlobalAveragePool", f"{name}/GlobalAveragePool", [x])
    narrow = build.node("Relu", f"{name}/Relu", [build.conv(f"{name}/fc1", pooled, channels, channels // 4, (1, 1))])
    return build.node(
        "Sigmoid", f"{name}/Sigmoid", [build.conv(f"{name}/fc2", narrow, channels // 4, channels, (1, 1))]
    )


def _dense(build: Builder, name: str, x: str, width: int) -> str:
    normal = build.node(
        "InstanceNormalization",
        f"{name}/InstanceNormalization",
        [x, build.weight(f"{name}.scale", build.draw(width, scale=0.1, around=1)), build.shift(f"{name}.bias", width)],
        epsilon=1e-5,
    )
    slope = build.weight(f"{name}.slope", np.abs(build.draw(width, 1, 1, scale=0.2)))
    grown = build.conv(f"{name}/conv", build.node("PRelu", f"{name}/PRelu", [normal, slope]), width, width)
    return build.node("Concat", f"{name}/Concat", [x, grown], axis=1)


def _around(build: Builder, name: str, x: str, width: int) -> str:
    """Down by a pool, up again by a transposed convolution, and what is left of it."""
    low = build.node("AveragePool", f"{name}/AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2])
    weights = build.weight(f"{name}/up.weight", build.draw(width, width, 2, 2, scale=1 / np.sqrt(width)))
    up = build.node("ConvTranspose", f"{name}/ConvTranspose", [low, weights], kernel_shape=[2, 2], strides=[2, 2])
    rest = build.node("Sub", f"{name}/Sub", [x, up])
    squashed = build.node("HardSwish", f"{name}/HardSwish", [rest])
    return build.node(
        "Div", f"{name}/Div", [squashed, build.weight(f"{name}.scale", 0.5 + build.random.random((width, 1, 1)))]
    )


def _branches(build: Builder, name: str, x: str, into: int, width: int) -> str:
    one = _unit(build, f"{name}/b1", x, into, width, (1, 1))
    three = _unit(build, f"{name}/b3/1", _unit(build, f"{name}/b3/0", x, into, width, (1, 1)), width, width, (3, 3))
    seven = _unit(build, f"{name}/b7/0", x, into, width, (1, 7))
    seven = _unit(build, f"{name}/b7/1", seven, width, width, (7, 1))
    pool = build.node(
        "AveragePool", f"{name}/bp/AveragePool", [x], kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1
    )
    pool = _unit(build, f"{name}/bp", pool, into, width, (1, 1))
    return build.node("Concat", f"{name}/Concat", [one, three, seven, pool], axis=1)


def _unit(build: Builder, name: str, x: str, into: int, out: int, kernel: tuple[int, int]) -> str:
    return build.node(
        "Relu", f"{name}/Relu", [build.batch_norm(f"{name}/bn", build.conv(name, x, into, out, kernel), out)]
    )


def _image(side: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed + 1).standard_normal((1, 3, side, side)).astype(np.float32)
