"""Which nodes of a graph can be quantised, which of their inputs are weights, and along which axes.

A weight is what depends on no input of the graph. An axis is contracted where products are summed along it: blocks lie
along it, and no scale but a block's may vary along it. A weight's channels are those of the node's output.
"""

from collections.abc import Collection, Mapping

import onnx
from msgspec import Struct
from onnx import TensorProto, helper

from layerwise._tool.surgery.cut.randomness import RANDOM_OPS
from layerwise._tool.surgery.cut.segments import CONTROL_FLOW, GraphCut
from layerwise._tool.surgery.model.structure import node_label
from layerwise._tool.surgery.precision.plan import EXACT, ONNX_TYPE, LowType
from layerwise._tool.surgery.quantise.formats import QUANTISED_OPS, Format
from layerwise._tool.surgery.types.node_types import node_slots

Axes = tuple[int, int | None]


class Operand(Struct, frozen=True):
    """An input of a node that is quantised. axis: the one that is contracted; channel: of a weight's scales, None: it
    has none. weight: it is constant.
    """

    position: int
    name: str
    weight: bool
    axis: int = -1
    channel: int | None = None


class Candidate(Struct, frozen=True):
    """A node that can be low. i: its position in the cut; made: its first output; outputs: positions of those that are
    rounded too.
    """

    i: int
    label: str
    op: str
    made: str
    operands: tuple[Operand, ...]
    outputs: tuple[int, ...] = ()

    @property
    def weights(self) -> tuple[Operand, ...]:
        return tuple(operand for operand in self.operands if operand.weight)

    @property
    def activations(self) -> tuple[Operand, ...]:
        return tuple(operand for operand in self.operands if not operand.weight)


def constants(cut: GraphCut) -> frozenset[str]:
    """The tensors that depend on no input of the graph, and are drawn from no random numbers."""
    known = {*cut.initializers, *cut.sparse}
    for node, names in zip(cut.nodes, cut.reads, strict=True):
        if node.op_type not in RANDOM_OPS and node.op_type not in CONTROL_FLOW and known.issuperset(names):
            known.update(name for name in node.output if name)
    return frozenset(known)


def candidates(
    cut: GraphCut, form: Format, types: Mapping[str, int], *, weights: bool = True, activations: bool = True,
    ops: Collection[str] = (),
) -> list[Candidate]:  # fmt: skip
    """The nodes that can be low, in topological order. weights, activations: which inputs become low; ops: the
    operators alone that count (none: those that the format is for).
    """
    fixed = constants(cut)
    find = _half if form.kind == "half" else _products
    found = find(cut, form, types, fixed, ops)
    wanted = []
    for one in found:
        kept = tuple(operand for operand in one.operands if (weights if operand.weight else activations))
        outputs = one.outputs if activations else ()
        if kept or outputs:
            wanted.append(Candidate(one.i, one.label, one.op, one.made, kept, outputs))
    return wanted


def _products(
    cut: GraphCut, form: Format, types: Mapping[str, int], fixed: frozenset[str], ops: Collection[str]
) -> list[Candidate]:
    found = []
    for i, node in enumerate(cut.nodes):
        if node.domain not in ("", "ai.onnx") or node.op_type not in QUANTISED_OPS or (ops and node.op_type not in ops):
            continue
        made = {name for name in node.output if name}
        if made <= fixed:
            continue
        operands = tuple(
            Operand(position, node.input[position], node.input[position] in fixed, axis, channel)
            for position, (axis, channel) in _axes(node).items()
            if position < len(node.input) and types.get(node.input[position]) == TensorProto.FLOAT
        )
        if node.op_type == "Gather":
            operands = tuple(operand for operand in operands if operand.weight)
        if operands:
            found.append(Candidate(i, node_label(node), node.op_type, _first(node), operands))
    return found


def _axes(node: onnx.NodeProto) -> dict[int, Axes]:
    """Input -> the axis that is contracted, and that of its channels."""
    given = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    if node.op_type == "MatMul":
        return {0: (-1, -2), 1: (-2, -1)}
    if node.op_type == "Gemm":
        a, b = given.get("transA", 0), given.get("transB", 0)
        return {0: (0, 1) if a else (1, 0), 1: (1, 0) if b else (0, 1)}
    if node.op_type == "Gather":
        return {0: (-1, 0)}
    if node.op_type in ("LSTM", "GRU", "RNN"):
        return {0: (-1, None), 1: (-1, 1), 2: (-1, 1)}
    return {0: (1, None), 1: (0, 1) if node.op_type == "ConvTranspose" else (1, 0)}


def _half(
    cut: GraphCut, form: Format, types: Mapping[str, int], fixed: frozenset[str], ops: Collection[str]
) -> list[Candidate]:
    """Every node that can compute in the type, but those that only move values."""
    low: LowType = "float16" if form.name == "fp16" else "bfloat16"
    opsets = {entry.domain or "": entry.version for entry in cut.model.opset_import}
    found = []
    for i, node in enumerate(cut.nodes):
        if node.op_type in EXACT or (ops and node.op_type not in ops) or fixed.issuperset(filter(None, node.output)):
            continue
        slots = node_slots(node, types, opsets, ONNX_TYPE[low])
        if slots is None or slots.by_attribute or not slots.outputs:
            continue
        operands = tuple(
            Operand(position, node.input[position], node.input[position] in fixed)
            for position in sorted(slots.inputs)
            if node.input[position]
        )
        found.append(Candidate(i, node_label(node), node.op_type, _first(node), operands, tuple(sorted(slots.outputs))))
    return found


def _first(node: onnx.NodeProto) -> str:
    return next(filter(None, node.output), "")
