"""What the first weights and strides of a graph ask of an input's dimensions."""

from typing import Any, NamedTuple

from layerwise._tool.surgery.feeds.graph import FeedGraph, Use, Value, attribute

_ELEMENTWISE = frozenset({
    "Identity", "Cast", "Add", "Sub", "Mul", "Div", "Pad", "BatchNormalization", "Relu", "Clip", "QuantizeLinear",
    "DequantizeLinear", "Neg", "Pow", "Sqrt", "Log", "Abs", "InstanceNormalization", "Sigmoid", "Tanh", "Dropout",
})  # fmt: skip
_RECURRENT = ("LSTM", "GRU", "RNN")
_CONVOLUTIONS = ("Conv", "ConvInteger", "QLinearConv", "FusedConv", "ConvTranspose")
_STRIDED = (*_CONVOLUTIONS[:4], "MaxPool", "AveragePool", "LpPool")
_MOST, _LARGEST_STRIDE = 400, 1024
Axes = tuple[int | None, ...]
"""Of each axis of a tensor the input's axis that it is."""


class Stem(NamedTuple):
    """Axis of an input -> what is known: sizes that weights ask for, and kinds (channels, height, width, frames, depth,
    sequence, batch). by: the operator that says so. stride: how many elements of a spatial axis become one.
    """

    sizes: dict[int, int]
    kinds: dict[int, str]
    by: str = ""
    stride: int = 1


def stem(graph: FeedGraph, name: str, rank: int) -> Stem:
    """Follow an input of that rank to the first node with weights."""
    waiting: list[tuple[Value, Axes]] = [(Value(0, name), tuple(range(rank)))]
    seen: set[Value] = set()
    while waiting and len(seen) < _MOST:
        value, axes = waiting.pop(0)
        if value in seen:
            continue
        seen.add(value)
        waiting += ((other, axes) for other in graph.same.get(value, ()))
        for use in graph.readers.get(value, ()):
            found = _asked(graph, use, axes)
            if found is not None:
                return found
            after = _moved(graph, use, axes)
            if after is not None:
                waiting += ((made, after) for made in graph.outputs(use))
    return Stem({}, {})


def _moved(graph: FeedGraph, use: Use, axes: Axes) -> Axes | None:
    """The axes after a node that only rearranges them; None after others."""
    node, op = use.node, use.node.op_type
    if op in _ELEMENTWISE and (use.slot == 0 or op in ("Add", "Sub", "Mul", "Div")):
        return axes
    if use.slot:
        return None
    if op == "Transpose":
        order = attribute(node, "perm", list(range(len(axes)))[::-1])
        return tuple(axes[i] for i in order) if all(i < len(axes) for i in order) else None
    if op == "Unsqueeze":
        where = _ints(graph, use, "axes")
        return None if where is None else _unsqueezed(axes, where)
    if op == "Slice" or (op == "Concat" and len(axes) > 2):
        return axes
    return None


def _ints(graph: FeedGraph, use: Use, name: str) -> list[int] | None:
    given = attribute(use.node, name, None)
    if isinstance(given, list):
        return given
    constant = graph.constant(graph.read_by(use, 1))
    return None if constant is None else [int(i) for i in constant.reshape(-1)]


def _unsqueezed(axes: Axes, where: list[int]) -> Axes:
    rank = len(axes) + len(where)
    new = {place % rank for place in where}
    rest = iter(axes)
    return tuple(None if place in new else next(rest, None) for place in range(rank))


def _asked(graph: FeedGraph, use: Use, axes: Axes) -> Stem | None:
    """What a node with weights asks; None if it has none."""
    op = use.node.op_type
    if use.slot == 0 and op in _CONVOLUTIONS:
        weights = graph.dims(graph.read_by(use, 3 if op == "QLinearConv" else 1))
        return _of_convolution(graph, use, axes, weights)
    weights = graph.dims(graph.read_by(use, 1))
    if use.slot or not weights or not axes:
        return None
    rows: Any = None
    if op in _RECURRENT and len(axes) == 3 and len(weights) == 3:
        places = ("sequence", "batch") if not attribute(use.node, "layout", 0) else ("batch", "sequence")
        kinds = {axis: kind for axis, kind in zip(axes, places, strict=False) if axis is not None}
        return Stem(_sized({axes[2]: weights[2]}), kinds, op)
    if op in ("MatMul", "MatMulInteger") and len(weights) >= 2:
        rows = weights[-2]
    elif op == "Gemm" and len(weights) == 2 and not attribute(use.node, "transA", 0):
        rows = weights[1] if attribute(use.node, "transB", 0) else weights[0]
    elif op in ("LayerNormalization", "SimplifiedLayerNormalization") and len(weights) == 1:
        rows = weights[0]
    elif op in ("MatMulNBits",):
        rows = attribute(use.node, "K", 0)
    return Stem(_sized({axes[-1]: rows}), {}, op) if rows else None


def _sized(sizes: dict[int | None, int | None]) -> dict[int, int]:
    return {axis: size for axis, size in sizes.items() if axis is not None and size}


def _of_convolution(graph: FeedGraph, use: Use, axes: Axes, weights: tuple[int | None, ...] | None) -> Stem:
    spatial = [axis for axis in axes[2:] if axis is not None]
    names = {1: ["frames"], 2: ["height", "width"], 3: ["depth", "height", "width"]}.get(len(spatial), [])
    kinds = dict(zip(spatial, names, strict=False))
    sizes: dict[int, int] = {}
    if weights and len(weights) > 1 and weights[1] and len(axes) > 1 and axes[1] is not None:
        transposed = use.node.op_type == "ConvTranspose"
        sizes[axes[1]] = weights[0] or 1 if transposed else weights[1] * attribute(use.node, "group", 1)
        kinds[axes[1]] = "channels"
    if axes and axes[0] is not None:
        kinds[axes[0]] = "batch"
    return Stem(sizes, kinds, use.node.op_type, _total_stride(graph, use))


def _total_stride(graph: FeedGraph, first: Use) -> int:
    """The largest product of strides on a way from a node on."""
    best: dict[Value, int] = {}
    waiting = [(made, _stride(first)) for made in graph.outputs(first)]
    most = _stride(first)
    while waiting and len(best) < 50 * _MOST:
        value, stride = waiting.pop()
        if best.get(value, 0) >= stride:
            continue
        best[value] = stride
        most = max(most, stride)
        for use in graph.readers.get(value, ()):
            after = min(stride * _stride(use), _LARGEST_STRIDE)
            waiting += ((made, after) for made in graph.outputs(use))
    return most


def _stride(use: Use) -> int:
    return max(attribute(use.node, "strides", [1]), default=1) if use.node.op_type in _STRIDED and not use.slot else 1
