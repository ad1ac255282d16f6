"""Whether names leave tensors of two models without counterpart."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.sides.side import ModelSide

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut


def names_suffice(mine: "GraphCut", side: ModelSide) -> bool:
    """Whether equal names pair all floating tensors that nodes of one of two graphs make."""
    theirs = side.model.cut
    paired = {side.own(name) for name in mine.maker}
    alone = [name for name in mine.maker if side.own(name) not in theirs.maker]
    others = [own for own in theirs.maker if own not in paired]
    return not (alone and others and _any_floating(mine, alone) and _any_floating(theirs, others))


def _any_floating(cut: "GraphCut", names: list[str]) -> bool:
    """Whether any of the tensors is a floating one that nodes compute, or one of unknown type."""
    from layerwise._tool.surgery.types.node_types import tensor_types

    computed = [name for name in names if cut.nodes[cut.maker[name]].op_type != "Constant"]
    if not computed:
        return False
    try:
        types = tensor_types(cut.model)
    except LayerwiseError:
        return True
    return any(name not in types or is_floating(dtype_name(types[name])) for name in computed)
