"""Activations in few bits that lose far more than all others of their model."""

from collections import Counter
from collections.abc import Mapping
from statistics import median

from msgspec.structs import replace

from layerwise._tool.debugtools.compare.quantised_row import QuantisedRow

ALONE = 4.0
"""dB by which one activation loses more than the others, at least."""
_SPREADS = 3.0
_FEW = 4


def standing_out(rows: Mapping[int, QuantisedRow]) -> dict[int, QuantisedRow]:
    """The activations' rows; one that loses far more than all others do is wrong too."""
    losses = [row.loss or 0.0 for row in rows.values() if row.sqnr is not None and not row.masked]
    if len(losses) < _FEW:
        return dict(rows)
    middle = median(losses)
    apart = sorted(abs(loss - middle) for loss in losses)
    limit = middle + ALONE + _SPREADS * apart[int(0.9 * (len(apart) - 1))]
    counts = Counter(row.scale for row in rows.values())  # pools, views and concatenations keep what they read
    return {number: row if counts[row.scale] > 1 else _told(row, limit) for number, row in rows.items()}


def _told(row: QuantisedRow, limit: float) -> QuantisedRow:
    """limit: of the loss in dB, from which on a tensor stands out."""
    loss = row.loss or 0.0
    if row.word or row.masked or row.elsewhere or loss <= limit or row.form == "dynamic":
        return row
    if row.clipped and row.clipped > 1e-3:
        text = f"{row.clipped:.1%} of its values are clipped"
        return replace(row, word="clipped", text=f"{text}: {loss:.1f} dB lost, far more than at the others")
    text = f"its values take up {row.used:.0%} of the codes" if row.used is not None else "its steps are large"
    return replace(row, word="scale", text=f"{text}: {loss:.1f} dB lost, far more than at the others")
