"""Whether names tell which tensors of two models belong together."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.sides.side import ModelSide

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut


_FEW = 2  # operators that somebody may have replaced
_SHARE = 20
_TAKING_NAMES = frozenset({"Cast", "DequantizeLinear"})  # of what a conversion computes in another type before them
_FLOATING = frozenset(
    {"Conv", "BatchNormalization", "LayerNormalization", "Softmax", "Sigmoid", "Tanh", "Erf", "Sqrt", "AveragePool"}
)
"""Operators of ONNX that make nothing but floating tensors: to infer types takes longer."""


def what_names_do(mine: "GraphCut", side: ModelSide) -> str:
    """What is wrong with pairing two graphs' tensors by equal names: they leave floating tensors of both alone or stand
    for other operators, as where a numbering is shifted. "" if nothing is.
    """
    theirs = side.model.cut
    paired = {side.own(name) for name in mine.maker}
    alone = [name for name in mine.maker if side.own(name) not in theirs.maker]
    others = [own for own in theirs.maker if own not in paired]
    if alone and others and _any_floating(mine, alone) and _any_floating(theirs, others):
        return "leave tensors of both without counterpart"
    shared = [(name, side.own(name)) for name in mine.maker if side.own(name) in theirs.maker]
    operators = [(_operator(mine, name), _operator(theirs, own)) for name, own in shared]
    differ = sum(a != b and not {a[1], b[1]} & _TAKING_NAMES for a, b in operators)
    return "stand for other operators" if differ > max(_FEW, len(shared) // _SHARE) else ""


def _operator(cut: "GraphCut", name: str) -> tuple[str, str]:
    node = cut.nodes[cut.maker[name]]
    return node.domain, node.op_type


def _any_floating(cut: "GraphCut", names: list[str]) -> bool:
    """Whether any of the tensors is a floating one that nodes compute, or one of unknown type."""
    from layerwise._tool.surgery.types.node_types import tensor_types

    computed = [name for name in names if cut.nodes[cut.maker[name]].op_type != "Constant"]
    if not computed:
        return False
    if any(domain in ("", "ai.onnx") and op in _FLOATING for domain, op in (_operator(cut, name) for name in computed)):
        return True
    try:
        types = tensor_types(cut.model)
    except LayerwiseError:
        return True
    return any(name not in types or is_floating(dtype_name(types[name])) for name in computed)
