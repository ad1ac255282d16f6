"""The ledgers of one comparison: of each pair of sides of which one holds tensors in few bits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.quantised.ledger import Ledger, ledger_of
from layerwise._tool.debugtools.compare.result import CompareResult
from layerwise._tool.debugtools.compare.rows import LayerRow, Pair
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.sides.side import Side
from layerwise._tool.debugtools.compare.spec import ToleranceSpec, rules_of

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class QuantisedPairs:
    """model: whose names the comparison has. unfused: layers are observed so, which codes are paired for."""

    def __init__(self, sides: Sequence[Side], pairs: Sequence[Pair], model: Model | None, *, unfused: bool) -> None:
        self._sides = sides
        made = ((pair, ledger_of(sides[pair[0]], sides[pair[1]], model)) for pair in pairs)
        self._ledgers: dict[Pair, Ledger] = {pair: found for pair, found in made if found is not None}
        for found in self._ledgers.values():
            if unfused and len(pairs) == 1:  # a side that is in two pairs has one set of names
                found.pair()

    def fed(self, feed: Mapping[str, Array]) -> None:
        """Take in the inputs of an iteration."""
        for found in self._ledgers.values():
            found.fed(feed)

    def held(self, row: LayerRow, a: Array, b: Array) -> LayerRow:
        """Take in a compared tensor; its row, with how well codes hold it where one side does so in few bits."""
        found = self._ledgers.get(row.pair)
        if found is None:
            return row
        mine, other = (self._sides[i] for i in row.pair)
        if found.side is not mine:
            mine, other, b = other, mine, a
        own = mine.own(row.tensor)
        found.saw(own, b, other.own(row.tensor))
        held = found.of(own)
        return row if held is None else replace(row, quantised=held)

    def tell(self, context: "JobContext", result: CompareResult, tolerance: ToleranceSpec) -> None:
        """Write the rows of table `quantised` and what they come to. What no format explains does not pass where
        rounding decides.
        """
        for found in self._ledgers.values():
            for each in found.rows():
                context.row("quantised", each)
            held = found.result()
            if result.quantised is None or held.wrong > result.quantised.wrong:
                result.quantised = held
            if held.wrong and rules_of(tolerance, layers=True).auto:
                result.passed = False
