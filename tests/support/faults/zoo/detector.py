"""A small detector: backbone, feature pyramid by Resize, and heads whose shapes are worked out in the graph."""

import numpy as np
from onnx import TensorProto
from support.faults.zoo.build import Builder, Sample, Shape

ANCHORS, CLASSES = 2, 4


def detector(small: bool = False, seed: int = 51) -> Sample:
    """image [1, 3, H, W] to `boxes` [1, N, 4], `scores` [1, N, 4] and the `best` of them."""
    side, width, levels = (16, 8, 2) if small else (96, 16, 3)
    build = Builder("detector", 17, seed)
    maps = _backbone(build, width, levels)
    maps = _pyramid(build, maps, width)
    offsets, scores = [], []
    for level, features in enumerate(maps):
        name = f"/head.{level}"
        hidden = build.node("Relu", f"{name}/Relu", [build.conv(name, features, width, width)])
        offsets.append(_rows(build, f"{name}/box", hidden, width, 4))
        scores.append(_rows(build, f"{name}/class", hidden, width, CLASSES))
    boxes = _decode(build, build.node("Concat", "/Concat", offsets, axis=1), maps, 2 ** np.arange(len(maps)))
    build.node("Identity", "/boxes/Identity", [boxes], "boxes")
    build.node("Sigmoid", "/Sigmoid", [build.node("Concat", "/Concat_1", scores, axis=1)], "scores")
    build.split("TopK", "/TopK", [_confidence(build), build.weight("k", np.array([5]))], 2, ["best", "best_at"], axis=1)
    outputs: dict[str, Shape] = {"boxes": [1, "n", 4], "scores": [1, "n", CLASSES], "best": [1, 5]}
    model = build.model({"image": (TensorProto.FLOAT, [1, 3, side, side])}, outputs)
    return Sample(
        model, {"image": np.random.default_rng(seed + 1).standard_normal((1, 3, side, side)).astype(np.float32)}
    )


def _confidence(build: Builder) -> str:
    return build.node("ReduceMax", "/ReduceMax", ["scores"], axes=[2], keepdims=0)


def _backbone(build: Builder, width: int, levels: int) -> list[str]:
    x = build.node("Relu", "/stem/Relu", [build.batch_norm("/stem/bn", build.conv("/stem", "image", 3, width), width)])
    maps = []
    for level in range(levels):
        name = f"/backbone.{level}"
        x = build.batch_norm(f"{name}/bn", build.conv(name, x, width, width, stride=2), width)
        x = build.node("Clip", f"{name}/Clip", [x, build.weight("zero", 0.0), build.weight("six", 6.0)])
        inner = build.node("Softplus", f"{name}/Softplus", [build.conv(f"{name}/inner", x, width, width, gain=0.5)])
        x = build.node("Add", f"{name}/Add", [x, build.node("Tanh", f"{name}/Tanh", [inner])])
        maps.append(x)
    return maps


def _pyramid(build: Builder, maps: list[str], width: int) -> list[str]:
    """Each level is added to the one below it, brought to that one's size."""
    x = build.conv("/fpn.top", maps[-1], width, width, (1, 1))
    made = [x]
    for level in range(len(maps) - 2, -1, -1):
        name = f"/fpn.{level}"
        lateral = build.conv(name, maps[level], width, width, (1, 1))
        grown = build.node(
            "Resize", f"{name}/Resize", [x, "", "", _size(build, name, lateral, x)], mode="linear",
            coordinate_transformation_mode="half_pixel",
        )  # fmt: skip
        x = build.node("Add", f"{name}/Add", [lateral, grown])
        made.append(x)
    return made[::-1]


def _size(build: Builder, name: str, like: str, x: str) -> str:
    """The shape of `x` with the height and width of `like`."""
    zero, two, four = (build.weight(f"at_{i}", np.array([i])) for i in (0, 2, 4))
    head = build.node("Slice", f"{name}/Slice", [build.node("Shape", f"{name}/Shape", [x]), zero, two])
    tail = build.node("Slice", f"{name}/Slice_1", [build.node("Shape", f"{name}/Shape_1", [like]), two, four])
    return build.node("Concat", f"{name}/Concat", [head, tail], axis=0)


def _rows(build: Builder, name: str, x: str, width: int, columns: int) -> str:
    """[1, anchors·columns, H, W] to [1, H·W·anchors, columns]."""
    raw = build.conv(name, x, width, ANCHORS * columns, gain=0.2)
    batch = build.node(
        "Gather", f"{name}/Gather", [build.node("Shape", f"{name}/Shape", [raw]), build.weight("first", np.int64(0))]
    )
    batch = build.node("Unsqueeze", f"{name}/Unsqueeze", [batch, build.weight("at_0", np.array([0]))])
    rest = build.weight(f"rows_{columns}", np.array([-1, columns]))
    shape = build.node("Concat", f"{name}/Concat", [batch, rest], axis=0)
    turned = build.node("Transpose", f"{name}/Transpose", [raw], perm=[0, 2, 3, 1])
    return build.node("Reshape", f"{name}/Reshape", [turned, shape])


def _decode(build: Builder, offsets: str, maps: list[str], strides: np.ndarray) -> str:
    """Offsets to corners: centres move by the anchors' size, sizes grow by exp."""
    anchors = [_anchors(build, f"/anchors.{level}", x, float(strides[level])) for level, x in enumerate(maps)]
    sizes = build.node("Concat", "/anchors/Concat", anchors, axis=1)
    zero, two, four, axis = (build.weight(f"at_{i}", np.array([i])) for i in (0, 2, 4, 2))
    moves = build.node("Slice", "/decode/Slice", [offsets, zero, two, axis])
    grows = build.node("Slice", "/decode/Slice_1", [offsets, two, four, axis])
    centres = build.node("Mul", "/decode/Mul", [moves, sizes])
    spans = build.node("Mul", "/decode/Mul_1", [build.node("Exp", "/decode/Exp", [grows]), sizes])
    halves = build.node("Div", "/decode/Div", [spans, build.weight("two_f", 2.0)])
    low = build.node("Sub", "/decode/Sub", [centres, halves])
    high = build.node("Add", "/decode/Add", [centres, halves])
    return build.node("Concat", "/decode/Concat", [low, high], axis=2)


def _anchors(build: Builder, name: str, x: str, stride: float) -> str:
    """The anchors' sizes [1, H·W·anchors, 2]."""
    shape = build.node("Shape", f"{name}/Shape", [x])
    space = build.node(
        "Slice", f"{name}/Slice", [shape, build.weight("at_2", np.array([2])), build.weight("at_4", np.array([4]))]
    )
    count = build.node("ReduceProd", f"{name}/ReduceProd", [space], keepdims=1)
    ones = build.weight("one_row", np.array([1]))
    target = build.node("Concat", f"{name}/Concat", [ones, count, ones], axis=0)
    pair = np.array([[[1.0, 2.0, 2.0, 1.0]]]) * stride
    wide = build.node("Expand", f"{name}/Expand", [build.weight(f"{name}.sizes", pair), target])
    return build.node("Reshape", f"{name}/Reshape", [wide, build.weight("pairs", np.array([1, -1, 2]))])
