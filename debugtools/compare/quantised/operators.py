"""Which operators read and make codes, and where they have scales and zero points."""

from typing import TypeGuard

from msgspec import Struct

from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side


class Slots(Struct, frozen=True):
    """Places among a node's inputs of codes, scale and zero point; -1 for what is not there. axis: of many scales."""

    codes: int
    scale: int
    zero: int
    axis: int = -1


class Operator(Struct, frozen=True):
    """reads: codes that it takes; makes: scale and zero point of the codes that it gives, None if it gives values."""

    reads: tuple[Slots, ...]
    makes: tuple[int, int] | None = None


_TWO = (Slots(0, 1, 2), Slots(3, 4, 5))
_ONE = Operator((Slots(0, 1, 2),), (3, 4))
OPERATORS = {
    "QLinearConv": Operator((Slots(0, 1, 2), Slots(3, 4, 5, 0)), (6, 7)),
    "QLinearMatMul": Operator(_TWO, (6, 7)),
    "QLinearAdd": Operator(_TWO, (6, 7)),
    "QLinearMul": Operator(_TWO, (6, 7)),
    "QLinearWhere": Operator((Slots(1, 2, 3), Slots(4, 5, 6)), (7, 8)),
    "QGemm": Operator(_TWO, (7, 8)),
    "QLinearConcat": Operator((), (0, 1)),
    **dict.fromkeys(
        ("QLinearSigmoid", "QLinearLeakyRelu", "QLinearSoftmax", "QLinearAveragePool", "QLinearGlobalAveragePool",
         "QLinearReduceMean"),
        _ONE,
    ),
    "DynamicQuantizeMatMul": Operator((Slots(1, 2, 3),)),
    "MatMulIntegerToFloat": Operator((Slots(0, 2, 4), Slots(1, 3, 5))),
    "DynamicQuantizeLSTM": Operator((Slots(1, 8, 9, 0), Slots(2, 10, 11, 0))),
    "QAttention": Operator((Slots(0, 3, 6), Slots(1, 4, 7))),
}  # fmt: skip
"""Those that have scales among their inputs."""
INTEGER = {"MatMulInteger": (2, 3), "ConvInteger": (2, 3)}
"""Those whose scales are multiplied afterwards: places of both zero points."""
QUANTIZE = frozenset({"QuantizeLinear", "TRT_FP8QuantizeLinear", "TRT_INT4QuantizeLinear"})
DEQUANTIZE = frozenset({"DequantizeLinear", "TRT_FP8DequantizeLinear", "TRT_INT4DequantizeLinear"})
DYNAMIC = "DynamicQuantizeLinear"
BLOCKS = frozenset({"MatMulNBits", "MatMulBnb4", "GatherBlockQuantized"})
UNREAD = frozenset({
    "QMoE", "QEmbedLayerNormalization", "QOrderedMatMul", "QOrderedAttention", "QOrderedLongformerAttention",
    "QOrderedGelu", "QOrderedLayerNormalization", "QuantizeWithOrder", "DequantizeWithOrder", "MatMulFpQ4",
    "TRT_FP4DynamicQuantize", "TRT_MXFP8DynamicQuantize", "TRT_MXFP8DequantizeLinear",
})  # fmt: skip
"""Those whose codes are not read."""
QUANTISING = frozenset({*OPERATORS, *INTEGER, *QUANTIZE, *DEQUANTIZE, *BLOCKS, *UNREAD, DYNAMIC})
"""All of them."""
VIEWS = frozenset({
    "Reshape", "Transpose", "MaxPool", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Gather", "Split", "Identity",
    "Resize", "DepthToSpace", "SpaceToDepth", "Expand", "Tile",
})  # fmt: skip
"""Those that hand codes on as they are."""
SAME = frozenset({"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity"})
"""Those of them that hand on all codes, each once."""


def operator_of(op: str, inputs: int) -> Operator | None:
    """What an operator does with codes, None if nothing by itself; inputs: how many the node has."""
    if op == "QLinearConcat":
        return Operator(tuple(Slots(i, i + 1, i + 2) for i in range(2, inputs - 2, 3)), (0, 1))
    return OPERATORS.get(op)


def channel_axis(op: str, slot: int, rank: int, *, transposed: bool) -> int | None:
    """The axis of a weight along which an operator has its output channels; None where it has none or is not known.

    slot: where the operator takes it; transposed: Gemm's transB (or transA of its first input).
    """
    if op in ("Conv", "QLinearConv", "ConvInteger", "Gather", "GatherBlockQuantized"):
        return 0 if rank else None
    if op == "ConvTranspose":
        return 1 if rank > 1 else None
    if op in ("Gemm", "QGemm"):
        return 0 if (slot == 0) != transposed else 1
    if op in ("MatMul", "QLinearMatMul", "MatMulInteger", "MatMulIntegerToFloat", "DynamicQuantizeMatMul",
              "QAttention", "FusedMatMul"):  # fmt: skip
        if rank < 2:
            return None
        return rank - 2 if slot == 0 and op in ("MatMul", "FusedMatMul") else rank - 1
    return rank - 1 if op == "DynamicQuantizeLSTM" else None


SUMMING = frozenset({
    "Conv", "QLinearConv", "ConvInteger", "ConvTranspose", "Gemm", "QGemm", "MatMul", "QLinearMatMul", "MatMulInteger",
    "MatMulIntegerToFloat", "DynamicQuantizeMatMul", "QAttention", "FusedMatMul",
})  # fmt: skip
"""Those that sum over all axes of a weight but that of their output channels (and a batch)."""


def holds_codes(side: Side) -> TypeGuard[ModelSide]:
    """Whether a side's graph has an operator that makes, takes or reads codes."""
    if not isinstance(side, ModelSide) or not side.model.has_graph or side.spec.kind == "torch":
        return False
    return not side.model.operators.isdisjoint(QUANTISING)
