"""Looking for NaN and Inf in what the runners give."""

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import array_stats
from layerwise._tool.debugtools.compare.rows import ValidateRow
from layerwise._tool.debugtools.compare.table.layers import place_of

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

Array = NDArray[Any]


class Validator:
    """Checks arrays; a bad one gives a row in table `validate` and a line in the log."""

    def __init__(self, context: "JobContext") -> None:
        self._context = context
        self._looked_at = 0
        self.valid = not context.previous_rows("validate")

    def check(self, iteration: int, runner: str, name: str, array: Array) -> bool:
        """Return whether an array is free of NaN and Inf."""
        self._looked_at += array.size
        side = array_stats(array)
        if side is None or not side.nans + side.infs:
            return True
        self.valid = False
        first = min(place for place in (side.first_nan, side.first_inf) if place >= 0)
        row = ValidateRow(iteration, runner, name, side.nans, side.infs, place_of(first, array.shape))
        self._context.row("validate", row)
        found = f"{side.nans} NaN and {side.infs} Inf in {shown(name, 120)}, first at {row.first}"
        self._context.log(f"{shown(runner, 80)}: {found}", "error")
        return False

    def verdict(self) -> bool:
        """Whether all was valid; where there was not one value to look at it is not, and that is said."""
        if not self._looked_at:
            self._context.log("nothing was validated: no runner gave a value to look at", "error")
        return self.valid and self._looked_at > 0
