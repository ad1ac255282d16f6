"""Whether a side holds anything in few bits: most hold nothing, and what reads codes is not even imported then."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard

from layerwise._tool.debugtools.compare.quantised.operators import QUANTISING
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs
    from layerwise._tool.debugtools.compare.rows import Pair
    from layerwise._tool.debugtools.compare.sides.models import Model


def holds_codes(side: Side) -> TypeGuard[ModelSide]:
    """Whether a side's graph has an operator that makes, takes or reads codes."""
    if not isinstance(side, ModelSide) or not side.model.has_graph or side.spec.kind == "torch":
        return False
    return not side.model.operators().isdisjoint(QUANTISING)


def quantised_pairs(
    sides: Sequence[Side], pairs: Sequence["Pair"], model: "Model | None", *, unfused: bool
) -> "QuantisedPairs | None":
    """What pairs the tensors in few bits with what they hold, as `QuantisedPairs`; None where no side has any."""
    if not any(map(holds_codes, sides)):
        return None
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs  # it imports onnx

    return QuantisedPairs(sides, pairs, model, unfused=unfused)
