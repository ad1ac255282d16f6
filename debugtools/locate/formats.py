"""What a reference that is quantised explains of a float suspect's errors."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.quantised.ledger import Ledger
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.surgery.cut.explode import Regions

if TYPE_CHECKING:
    from layerwise._tool.debugtools.locate.points import Point


def formats_of(ledger: Ledger | None, points: Iterable["Point"]) -> "ReferenceFormats | None":
    """What a reference's ledger explains of the tensors at some points; None where it is not quantised."""
    return None if ledger is None else ReferenceFormats(ledger, [point.name for point in points])


class ReferenceFormats:
    """ledger: of the reference, which holds tensors in few bits. names: the tensors that both sides have."""

    def __init__(self, ledger: Ledger, names: Iterable[str]) -> None:
        self._ledger, self._names = ledger, list(names)

    @property
    def _side(self) -> ModelSide:
        return self._ledger.side

    @cached_property
    def _regions(self) -> Regions:
        return Regions(self._side.model.cut, [self._side.own(name) for name in self._names])

    def saw(self, name: str, values: Array, own: str) -> None:
        """Take in the suspect's values of a tensor, `own` by its own name."""
        self._ledger.saw(self._side.own(name), values, own)

    def noise(self, name: str) -> float:
        """Relative L2 error that the reference's formats explain where it makes a tensor, before that is carried on."""
        theirs = self._side.own(name)
        return (
            self._ledger.regions.noise(self._regions.of(theirs).nodes) if theirs in self._side.model.cut.maker else 0.0
        )

    def beyond(self, name: str, values: Array) -> float:
        """Relative L2 size of what the codes in which the reference makes a tensor leave out of its values at their
        ends."""
        theirs = self._side.own(name)
        known = theirs in self._side.model.cut.maker
        return self._ledger.regions.beyond(self._regions.of(theirs).nodes, values) if known else 0.0
