"""Sides in few bits: most hold none, and what reads codes is not even imported then."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layerwise._tool.debugtools.compare.quantised.operators import holds_codes
from layerwise._tool.debugtools.compare.sides.side import Side

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs
    from layerwise._tool.debugtools.compare.rows import Pair
    from layerwise._tool.debugtools.compare.sides.models import Model


def quantised_pairs(
    sides: Sequence[Side], pairs: Sequence["Pair"], model: "Model | None", *, unfused: bool
) -> "QuantisedPairs | None":
    """What pairs the tensors in few bits with what they hold, as `QuantisedPairs`; None where no side has any."""
    if not any(map(holds_codes, sides)):
        return None
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs  # it imports onnx

    return QuantisedPairs(sides, pairs, model, unfused=unfused)
