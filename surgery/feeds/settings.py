"""Inputs that are settings rather than data: flags, k, thresholds, sizes and shapes, scalar lengths."""

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from layerwise._tool.backends.tensors import TensorInfo, is_floating
from layerwise._tool.surgery.feeds.follow import Traced
from layerwise._tool.surgery.feeds.graph import FeedGraph, Use, attribute
from layerwise._tool.surgery.feeds.sizes import Sizer


class Setting(NamedTuple):
    """The values of a setting (one for all elements, or each one's), and why."""

    values: tuple[float, ...]
    reason: str


_NAMED: tuple[tuple[str, float | str], ...] = (
    (r"past_?(seq|len|kv)|start_pos|past_sequence_length", "past"),
    (r"total_?(seq|len)", "total"),
    (r"max_(new_)?(length|tokens)", 20), (r"min_length", 1), (r"num_beams|num_return_sequences", 1),
    (r"temperature|repetition_penalty|length_penalty|speed|length_scale", 1), (r"top_p", 0.9), (r"(^|_)k$|top_k", 5),
    (r"iou", 0.5), (r"score_thr|conf(idence)?_thr|threshold", 0.1), (r"noise_scale", 0.667), (r"scale_factor", 1),
    (r"(^|_)axis$", 0),
)  # fmt: skip
_IMAGE_SIZE = re.compile(r"(orig|target|im|image|input)_?\w*(sizes?|shape|info)$", re.I)
_SHAPE_OF = ("Reshape", "Expand", "ConstantOfShape", "Tile")


def setting(graph: FeedGraph, sizer: Sizer, info: TensorInfo, shape: list[int], found: Traced) -> Setting | None:
    """The values of an input that sets something; None for data."""
    count = math.prod(shape)
    for use in found.uses:
        place = _AT.get((use.node.op_type, use.slot))
        if place is not None:
            return place(graph, sizer, use, count)
    if count == 1 and len(shape) <= 1:
        for pattern, value in _NAMED:
            if re.search(pattern, info.name, re.I):
                chosen = float(sizer.of(value)) if isinstance(value, str) else float(value)
                return Setting((chosen if is_floating(info.dtype) else max(1.0, chosen),), "a setting by its name")
    if info.name == "scales" and count == 3:
        return Setting((0.667, 1.0, 0.8), "noise, length and noise width of a speech model by its name")
    if _IMAGE_SIZE.search(info.name) and count and shape and shape[-1] in (2, 3):
        size = [float(sizer.of("height")), float(sizer.of("width")), 1.0][: shape[-1]]
        return Setting(tuple(size) * (count // shape[-1]), "the size of the images by its name")
    return None


def _always(value: float, reason: str) -> Callable[[FeedGraph, Sizer, Use, int], Setting]:
    return lambda graph, sizer, use, count: Setting((value,), reason)


def _k(graph: FeedGraph, sizer: Sizer, use: Use, count: int) -> Setting:
    dims = graph.dims(graph.read_by(use, 0)) or ()
    axis = next((item.i for item in use.node.attribute if item.name == "axis"), -1)
    most = dims[axis] if dims and -len(dims) <= axis < len(dims) else None
    return Setting((float(max(1, min(5, most or 1))),), f"k of TopK over {most or 'an unknown number of'} elements")


def _shape(graph: FeedGraph, sizer: Sizer, use: Use, count: int) -> Setting:
    dims = graph.dims(graph.read_by(use, 0)) or ()
    known = len(dims) == count and all(dims)
    if use.node.op_type == "Reshape":
        values = tuple(float(dim or 1) for dim in dims) if known else (*(1.0,) * (count - 1), -1.0)
        return Setting(values, "a shape that Reshape gives: pin it if it is another one")
    if use.node.op_type == "ConstantOfShape":
        return Setting(tuple(float(2 + i) for i in range(count)), "a shape to fill")
    return Setting((1.0,) * count, f"factors or a shape of 1s for {use.node.op_type}: as it is")


def _resized(graph: FeedGraph, sizer: Sizer, use: Use, count: int) -> Setting:
    dims = graph.dims(graph.read_by(use, 0)) or ()
    twice = [1.0] * max(0, count - 2) + [2.0] * min(2, count)
    if use.slot == 3 and len(dims) == count and all(dims):
        twice = [factor * (dim or 1) for factor, dim in zip(twice, dims, strict=True)]
    return Setting(tuple(twice), "Resize to twice the size")


def _end(graph: FeedGraph, sizer: Sizer, use: Use, count: int) -> Setting:
    dims = [dim for dim in graph.dims(graph.read_by(use, 0)) or () if dim]
    return Setting((float(max(dims, default=1)),), "the end of a Slice: everything")


def _axes(graph: FeedGraph, sizer: Sizer, use: Use, count: int) -> Setting:
    """The first axes; for Squeeze those of one element."""
    dims = graph.dims(graph.read_by(use, 0)) or ()
    ones = [axis for axis, size in enumerate(dims) if size == 1]
    axes = ones if use.node.op_type == "Squeeze" and len(ones) >= count else range(count)
    return Setting(tuple(float(axis) for axis in axes)[:count], f"axes of {use.node.op_type}")


def _split(graph: FeedGraph, sizer: Sizer, use: Use, count: int) -> Setting:
    """Parts as equal as can be; one number is the size of every part."""
    dims = graph.dims(graph.read_by(use, 0)) or ()
    axis = attribute(use.node, "axis", 0)
    size = dims[axis] if -len(dims) <= axis < len(dims) else None
    shape = graph.dims(graph.read_by(use, use.slot))
    if size is None or shape == ():
        return Setting((1.0,), f"the size of a part of {use.node.op_type}")
    parts = [float(size // count + (place < size % count)) for place in range(count)]
    return Setting(tuple(parts), f"parts of {size} for {use.node.op_type}")


def _total(graph: FeedGraph, sizer: Sizer, use: Use, count: int) -> Setting:
    total = sizer.of("total")
    return Setting((float(total - (use.slot == 5)),), f"{use.node.op_type} over {total} positions, past and new")


_AT: dict[tuple[str, int], Callable[[FeedGraph, Sizer, Use, int], Setting]] = {
    ("If", 0): _always(1, "chooses the branch of If: 0 is the other one"),
    **{(op, 1): _axes for op in ("Squeeze", "Unsqueeze", "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin",
                                 "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
                                 "ReduceSumSquare")},
    ("TensorScatter", 2): _always(0, "where TensorScatter writes: at the beginning"),
    ("Slice", 3): _axes, ("Pad", 3): _axes, ("CumProd", 1): _always(0, "the axis of CumProd"),
    ("Split", 1): _split, ("SplitToSequence", 1): _split,
    ("Loop", 0): _always(4, "the trips of Loop"),
    ("Loop", 1): _always(1, "the condition of Loop"),
    ("TopK", 1): _k,
    ("NonMaxSuppression", 2): _always(10, "boxes that NonMaxSuppression leaves of a class"),
    ("NonMaxSuppression", 3): _always(0.5, "the overlap that NonMaxSuppression allows"),
    ("NonMaxSuppression", 4): _always(0.1, "the score that NonMaxSuppression asks for"),
    ("Resize", 2): _resized, ("Resize", 3): _resized, ("Upsample", 1): _resized,
    ("Slice", 1): _always(0, "the start of a Slice"), ("Slice", 2): _end, ("Slice", 4): _always(1, "a step of Slice"),
    ("Pad", 1): _always(0, "what Pad adds: nothing"),
    ("Range", 0): _always(0, "the start of a Range"), ("Range", 1): _always(8, "the end of a Range"),
    ("Range", 2): _always(1, "the step of a Range"),
    ("OneHot", 1): _always(8, "the depth of OneHot"), ("CumSum", 1): _always(0, "the axis of CumSum"),
    ("Dropout", 1): _always(0.1, "the ratio of Dropout"), ("Dropout", 2): _always(0, "Dropout does not train"),
    ("Trilu", 1): _always(0, "the diagonal of Trilu"),
    ("GroupQueryAttention", 5): _total, ("GroupQueryAttention", 6): _total,
    **{(op, 0 if op == "ConstantOfShape" else 1): _shape for op in _SHAPE_OF},
}  # fmt: skip
