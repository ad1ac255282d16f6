"""Sides in few bits: most hold none, and what reads codes is not even imported then."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.debugtools.compare.quantised.operators import holds_codes
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs


def quantised_pairs(setup: Setup, folder: Path, *, unfused: bool) -> "QuantisedPairs | None":
    """What pairs the tensors in few bits with what they hold; None where no side has any. unfused: layers are observed
    so; folder: for tensors that wait.
    """
    if (not setup.observing and not _two_models(setup.sides)) or not any(map(holds_codes, setup.sides)):
        return None
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs  # it imports onnx

    return QuantisedPairs(setup, folder, unfused=unfused)


def _two_models(sides: Sequence[Side]) -> bool:
    return len({id(side.model) for side in sides if isinstance(side, ModelSide)}) > 1
