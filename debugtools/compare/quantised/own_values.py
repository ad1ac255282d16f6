"""Codes that fit the values that the quantised model has there itself, though not those of its float original.

Then nobody chose the scale wrongly: what comes to it differs from the original's for what lies before.
"""

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.quantised.grid import Grid, limits, reach
from layerwise._tool.debugtools.compare.quantised.judging_activations import used_share
from layerwise._tool.debugtools.compare.quantised.standing_out import ALONE
from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow

_OF_RANGE = frozenset({"scale", "zero point", "clipped"})
_TEXT = "its codes fit the values that come to it here, but not its float original's: they differ before"
_AT_END = 1e-3  # of the values
_USED = 0.7


def cleared(row: QuantisedRow, known: QuantisedRow | None, fits: Callable[[], bool]) -> QuantisedRow:
    """An activation's row, not accused of a range that fits its own values.

    known: its row so far, which decides at the later stages of a tensor. fits: whether the codes fit the quantised
    model's own values at this stage.
    """
    if row.word not in _OF_RANGE and (row.word or (row.loss or 0.0) <= ALONE):
        return row
    if known is not None and (known.word or known.elsewhere):
        elsewhere = known.elsewhere
    else:
        elsewhere = fits()
    return replace(row, word="", text=_TEXT if row.word else row.text, elsewhere=True) if elsewhere else row


def lost_elsewhere(row: QuantisedRow | None) -> float:
    """Relative L2 error of values that an activation's codes were not made for; 0 where they were."""
    return (row.error or 0.0) if row is not None and row.elsewhere else 0.0


def holds(row: QuantisedRow) -> bool:
    """Whether codes hold values well, by the row that these have: such that no other tensor may lose far less."""
    return not row.word and not row.masked and (row.loss or 0.0) <= ALONE


def are_taken_up(grid: Grid, values: Array) -> bool:
    """Whether values that were rounded to codes take these up, and were not clipped: hardly any lie at the ends, but
    for an end that is 0, where a rectifier may have been."""
    codes, known = grid.codes(values), limits(grid.kind)
    most = max(1.0, _AT_END * values.size)
    ends = [end for end, value in zip((known.low, known.high), reach(grid), strict=True) if value]
    clipped = any(np.count_nonzero(codes == end) > most for end in ends)
    return not clipped and used_share(values, grid) >= _USED
