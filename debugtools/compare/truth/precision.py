"""What a side rounds to where it makes a tensor, and how many roundings follow each other there."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.backends.tensors import dtype_name, is_floating, is_integral
from layerwise._tool.debugtools.compare.sides.engine import asked_types
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.surgery.cut.explode import Regions

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

QUANTIZING = frozenset({"QuantizeLinear", "DynamicQuantizeLinear"})
_PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "Einsum", "LSTM", "GRU", "RNN", "Attention"})
_EXACT = frozenset({
    "Identity", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Split", "Concat", "Gather",
    "GatherElements", "GatherND", "Scatter", "ScatterElements", "ScatterND", "Expand", "Tile", "Pad", "Where", "Cast",
    "CastLike", "Constant", "ConstantOfShape", "Shape", "Size", "Relu", "Neg", "Abs", "Sign", "Max", "Min", "Clip",
    "MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "DepthToSpace", "SpaceToDepth", "TopK", "Dropout", "Trilu",
    "Floor", "Ceil", "Round", "Not", "And", "Or", "Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual",
    "Compress", "OneHot", "ReverseSequence",
})  # fmt: skip
_ONE = frozenset({"Add", "Sub", "Mul", "Div", "Sqrt", "Reciprocal", "Sum"})
_SEVERAL = 8  # Softmax, a normalisation, an activation by a polynomial: their steps, and some that follow each other


def roundings(nodes: Iterable[onnx.NodeProto]) -> int:
    """Return how many roundings the nodes make at most one after the other, at least 1."""
    products = _PRODUCTS | {"ReduceSum", "ReduceMean", "AveragePool", "GlobalAveragePool"}
    counts = (0 if n.op_type in _EXACT else 1 if n.op_type in _ONE else 2 if n.op_type in products else _SEVERAL
              for n in nodes)  # fmt: skip
    return max(1, sum(counts))


def correctly_rounded(nodes: Sequence[onnx.NodeProto]) -> bool:
    """Whether one rounding of the exact result is all that may be lost, however the inputs cancel."""
    return len([node for node in nodes if node.op_type not in _EXACT]) <= 1 and all(
        node.op_type in _EXACT | _ONE for node in nodes
    )


def _on_cpu(spec: RunnerSpec) -> bool:
    """Whether a side runs on a backend whose sums were measured."""
    return spec.kind in ("onnxrt", "reference") and all(name.lower().startswith("cpu") for name in spec.providers)


class Kinds:
    """The types that a side rounds to. names: the tensors (the comparison's names) that cut its graph.

    blocks: the side adds up long sums in blocks.
    """

    def __init__(self, side: Side, names: Iterable[str]) -> None:
        self._side = side
        self.blocks = isinstance(side, ModelSide) and _on_cpu(side.spec)
        self._cut: GraphCut | None = None
        if isinstance(side, ModelSide):
            with suppress(LayerwiseError):  # an engine has no graph
                self._read(side, names)

    def _read(self, side: ModelSide, names: Iterable[str]) -> None:
        cut, made = side.observed.cut, side.made
        self._of = {name: made[side.own(name)] for name in names if side.own(name) in made}
        self._regions = Regions(cut, list(self._of.values()))
        self._asked = asked_types(side.spec)
        cuda = any(name.lower() in ("cuda", "gpu") for name in side.spec.providers) or side.spec.kind == "trt"
        self._tf32 = cuda and side.spec.tf32 is not False
        self._cut = cut

    def of(self, name: str, dtype: str, *, dequantizes: bool) -> tuple[list[str], list[str]]:
        """The types that are rounded to in a tensor's region, its own `dtype` first; and those of the weights there.

        dequantizes: so does the reference's graph there, so that quantised weights are no rounding.
        """
        if self._cut is None or name not in self._of:
            return [dtype], []
        nodes = [self._cut.nodes[i] for i in self._regions.of(self._of[name]).nodes]
        found = [dtype, *self._asked, *(kind for node in nodes for kind in _rounded_to(node))]
        weights = [kind for node in nodes for kind in self._weights(node)]
        if not dequantizes and self._has_quantized_weights(nodes):
            found.append("int8")
        if self._tf32 and any(node.op_type in _PRODUCTS for node in nodes):
            found.append("tf32")
        return found, weights

    def _has_quantized_weights(self, nodes: Sequence[onnx.NodeProto]) -> bool:
        assert self._cut is not None
        known = self._cut.initializers
        whole = any(
            is_integral(dtype_name(int(known[name].data_type))) and math.prod(known[name].dims) > 1
            for node in nodes
            if node.op_type in ("DequantizeLinear", "Gather")
            for name in node.input[:1]
            if name in known
        )
        return whole and any(node.op_type == "DequantizeLinear" for node in nodes)

    def _weights(self, node: onnx.NodeProto) -> list[str]:
        assert self._cut is not None
        known: Callable[[str], onnx.TensorProto | None] = self._cut.initializers.get
        kinds = [dtype_name(int(weight.data_type)) for name in node.input if (weight := known(name)) is not None]
        return [kind for kind in kinds if is_floating(kind) and kind != "float64"]


def _rounded_to(node: onnx.NodeProto) -> list[str]:
    if node.op_type == "Cast":
        return [dtype_name(int(a.i)) for a in node.attribute if a.name == "to"]
    return ["int8"] if node.op_type in QUANTIZING else []
