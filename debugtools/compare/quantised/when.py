"""Sides in few bits: most hold none, and what reads codes is not even imported then."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.quantised.operators import holds_codes
from layerwise._tool.debugtools.compare.result import Saturated
from layerwise._tool.debugtools.compare.rows import Pair
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs
    from layerwise._tool.debugtools.compare.quantised.saturating import Saturating


def quantised_pairs(setup: Setup, folder: Path, *, unfused: bool) -> "QuantisedPairs | None":
    """What pairs the tensors in few bits with what they hold; None where no side has any. unfused: layers are observed
    so; folder: for tensors that wait.
    """
    if (not setup.observing and not _two_models(setup.sides)) or not any(map(holds_codes, setup.sides)):
        return None
    from layerwise._tool.debugtools.compare.quantised.pairs import QuantisedPairs  # it imports onnx

    return QuantisedPairs(setup, folder, unfused=unfused)


class Saturation:
    """Of a comparison, whether tensors fail since kernels saturate here: `ask` looks into one that fails."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self._sides = sides
        self._asked: Saturating | None = None

    @property
    def first(self) -> Saturated | None:
        """The first that does."""
        return None if self._asked is None else next(iter(self._asked.found.values()), None)

    def ask(
        self, pair: Pair, name: str, tensors: tuple[Array, Array], result: Comparison, feed: Mapping[str, Array],
        host: Callable[..., tuple[Array, ...]],
    ) -> None:  # fmt: skip
        """As Saturating.ask."""
        if not any(map(holds_codes, self._sides)):
            return
        if self._asked is None:
            from layerwise._tool.debugtools.compare.quantised.saturating import Saturating  # it imports onnx

            self._asked = Saturating(self._sides)
        self._asked.ask(pair, name, tensors, result, feed, host)


def _two_models(sides: Sequence[Side]) -> bool:
    return len({id(side.model) for side in sides if isinstance(side, ModelSide)}) > 1
