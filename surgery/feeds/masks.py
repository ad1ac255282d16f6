"""Which inputs are attention masks, by use: what becomes of a 0 and of a 1 on the way to a Softmax."""

import math
from typing import Any, NamedTuple

import numpy as np

from layerwise._tool.backends.model.reads import subgraphs
from layerwise._tool.surgery.feeds.graph import FeedGraph, Use, Value, Walk

_MOST = 5_000
_PASS = frozenset({
    "Identity", "Cast", "CastLike", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Transpose", "Expand", "Tile",
    "Slice", "Gather", "GatherND", "GatherElements", "Concat", "Dropout", "Resize", "Pad", "Trilu",
})  # fmt: skip
_MEETS = frozenset({"And", "Or", "Mul", "Add", "Sub", "Min", "Max"})  # with what is no constant
_OWN = {("Attention", 3), ("MultiHeadAttention", 4), ("EmbedLayerNormalization", 7), ("QAttention", 5)}
_FAR = 100.0  # how much lower the logit of a masked position is at least


class Seen(NamedTuple):
    """A mask's values: what a kept position holds, and what a masked one; by: the operator that applies it."""

    kept: float
    masked: float
    by: str


def mask_by_use(graph: FeedGraph, name: str) -> Seen | None:
    """The values of a mask, if this input is one: 0s and 1s that decide what a Softmax leaves out."""
    walk = Walk(graph, name, (0.0, 1.0), _MOST)
    for _, use, (low, high) in walk:
        if (use.node.op_type, use.slot) in _OWN:
            return Seen(1.0, 0.0, use.node.op_type)
        if use.node.op_type in ("Softmax", "LogSoftmax") and abs(low - high) >= _FAR:
            return Seen(1.0, 0.0, use.node.op_type) if high > low else Seen(0.0, 1.0, use.node.op_type)
        found = _after(graph, use, low, high)
        if found is not None:
            walk.beyond(use, found)
    return None


def added_to_scores(graph: FeedGraph, name: str) -> bool:
    """Whether an input is added to what a Softmax takes, changed in shape alone."""
    walk, added = Walk(graph, name, None, _MOST), set[Value]()
    for value, use, _ in walk:
        if use.node.op_type == "Softmax" and value in added:
            return True
        if use.node.op_type == "Add" or (use.node.op_type in _PASS and use.slot == 0):
            walk.beyond(use, None)
            if use.node.op_type == "Add" or value in added:
                added |= set(graph.outputs(use))
    return False


def _after(graph: FeedGraph, use: Use, low: float, high: float) -> tuple[float, float] | None:
    """What becomes of the two values at a node; None where they are followed no further."""
    node, op = use.node, use.node.op_type
    if any(True for _ in subgraphs(node)):
        return None
    if op in _PASS:
        return (low, high) if use.slot == 0 or op == "Concat" else None
    if op == "Not":
        return float(not low), float(not high)
    if op == "Where":
        return _where(graph, use, low, high)
    if op in ("IsInf", "IsNaN", "Neg", "Log"):
        return (-low, -high) if op == "Neg" else (_log(low), _log(high)) if op == "Log" else None
    if len(node.input) != 2:
        return None
    constant = graph.constant(graph.read_by(use, 1 - use.slot))
    if constant is None or not constant.size:
        return (low, high) if op in _MEETS and not (op == "Sub" and use.slot == 1) else None
    return _binary(op, use.slot, low, high, float(constant.reshape(-1)[0]))


def _binary(op: str, slot: int, low: float, high: float, constant: float) -> tuple[float, float] | None:
    compute: dict[str, Any] = {
        "Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide, "Pow": np.power,
        "Equal": np.equal, "Greater": np.greater, "Less": np.less, "GreaterOrEqual": np.greater_equal,
        "LessOrEqual": np.less_equal, "And": np.logical_and, "Or": np.logical_or, "Min": np.minimum, "Max": np.maximum,
    }  # fmt: skip
    if op not in compute:
        return None
    with np.errstate(all="ignore"):
        pair = [compute[op](*((value, constant) if slot == 0 else (constant, value))) for value in (low, high)]
    return (float(pair[0]), float(pair[1])) if not any(math.isnan(float(value)) for value in pair) else None


def _where(graph: FeedGraph, use: Use, low: float, high: float) -> tuple[float, float] | None:
    if use.slot != 0:
        return low, high
    branches = [graph.constant(graph.read_by(use, slot)) for slot in (1, 2)]
    if all(branch is None for branch in branches):
        return None
    yes, no = (0.0 if branch is None or not branch.size else float(branch.reshape(-1)[0]) for branch in branches)
    return (yes if low else no), (yes if high else no)


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf
