"""How long the sums are that a node computes: what tells correct evaluations in another order apart."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

Shape = tuple[int, ...]
_PRODUCTS = frozenset({"MatMul", "Gemm", "FusedMatMul", "FusedGemm", "MatMulInteger", "QLinearMatMul"})
_CONVOLUTIONS = frozenset({"Conv", "ConvTranspose", "FusedConv", "ConvInteger", "QLinearConv"})
_POOLS = frozenset({"AveragePool", "GlobalAveragePool", "LpPool", "GlobalLpPool"})
_LOSSES = frozenset({"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"})
_TRANSFORMS = frozenset({"DFT", "STFT"})
_SAMPLING = frozenset({"Resize", "Upsample", "GridSample", "AffineGrid", "RoiAlign"})  # at places that are computed
_ALONG_AXES = frozenset({"Softmax", "LogSoftmax", "CumSum", "Einsum", "LSTM", "GRU", "RNN", "Attention"})


def is_convolution(op: str) -> bool:
    """Whether an operator is a convolution, which optimised sessions compute in another layout."""
    return op in _CONVOLUTIONS


def divides(node: "onnx.NodeProto") -> bool:
    """Whether the length of a node's sums is told by how many elements its result has."""
    return node.op_type in _POOLS | _LOSSES or node.op_type.startswith("Reduce")


def adds_up(node: "onnx.NodeProto") -> bool:
    """Whether `terms` looks at the shapes of what a node reads."""
    along = node.op_type in _PRODUCTS | _CONVOLUTIONS | _ALONG_AXES | _TRANSFORMS | _SAMPLING
    return along or "Normalization" in node.op_type or divides(node)


def terms(node: "onnx.NodeProto", shape: Callable[[str], Shape | None], size: int) -> int:
    """Return how many terms the sums of a node have, 1 if it adds nothing up; where that is not known.

    shape: of a tensor, None if not known; size: elements of what the node makes.
    """
    if not adds_up(node):
        return 1
    known = [shape(name) or () for name in node.input[:2]]
    first = known[0] if known else ()
    if node.op_type in _PRODUCTS and first:
        turned = any(a.name == "transA" and a.i for a in node.attribute)
        return first[0 if turned else -1]
    if node.op_type in _PRODUCTS and len(known) > 1 and len(known[1]) > 1:
        turned = any(a.name == "transB" and a.i for a in node.attribute)
        return known[1][-1 if turned else -2]
    if node.op_type in _CONVOLUTIONS and len(known) > 1:
        return math.prod(known[1][1:]) if known[1] else _window(node, first)
    if divides(node):
        return math.prod(first) // max(1, size)
    if node.op_type in _ALONG_AXES or "Normalization" in node.op_type:
        return max(math.prod(first[2:]), *first[-1:], 1)
    if node.op_type in _TRANSFORMS:
        return max(map(_transform_terms, _transformed(node, shape)), default=1)
    if node.op_type in _SAMPLING:
        return 2 * max(first, default=1)
    return 1


def _transformed(node: "onnx.NodeProto", shape: Callable[[str], Shape | None]) -> Shape:
    """The lengths of which one is that of a Fourier transform."""
    if node.op_type == "STFT":
        return (len(node.input) > 2 and shape(node.input[2])) or (shape(node.input[0]) or ())[1:2]
    known = shape(node.input[0]) or ()
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    if axis is not None and -len(known) <= axis < len(known):
        return (known[axis],)
    return known[1:-1] or known[:1]


def _transform_terms(length: int) -> int:
    """onnxruntime takes the angles of a length that is no power of two as products in the type itself: off by up to
    2.5 units roundoff of the length, measured from 8 to 2048. Sums of so many terms are as far off.
    """
    return 2 * length if length & (length - 1) == 0 else 6 * length * length


def _window(node: "onnx.NodeProto", shape: Shape) -> int:
    """What a convolution sums whose weight is made by nodes, as far as its attributes and its input's shape tell."""
    window, groups = 1, 1
    for attribute in node.attribute:
        if attribute.name == "kernel_shape":
            window = math.prod(attribute.ints)
        elif attribute.name == "group":
            groups = attribute.i
    channels = shape[1] if len(shape) > 1 else 1
    return max(1, window * channels // max(1, groups))
