"""Sets of low candidates as rows of the table sets."""

from collections.abc import Mapping, Sequence
from hashlib import blake2b

from layerwise._tool.debugtools.search.lens.errors import Errors, finite
from layerwise._tool.debugtools.search.lens.predict import predicted, worst
from layerwise._tool.debugtools.search.lens.rows import EffectRow, SetRow

WITHIN, NOISE = 0.15, 1e-6


def alike(row: SetRow) -> bool:
    """Whether a set was predicted; below what FP32 itself is off by nothing can be."""
    if row.error is None or row.predicted is None:
        return row.error is row.predicted
    return abs(row.error - row.predicted) <= max(WITHIN * row.predicted, NOISE)


def set_row(
    what: str, low: Sequence[int], rows: Mapping[int, EffectRow], errors: Errors, ratio: float | None = None
) -> SetRow:
    """A set of low candidates as a row of the table sets."""
    chosen = frozenset(low)
    kept = [row for i, row in rows.items() if i not in chosen]
    told = finite(worst(predicted(rows, low))) if rows else None
    return SetRow(
        what=what, key=set_key(low), low=len(low), kept=len(kept), cost=sum(row.cost for row in kept),
        predicted=told, error=finite(errors.worst), ratio=finite(ratio),
        passed=None if ratio is None else ratio <= 1,
    )  # fmt: skip


def set_key(low: Sequence[int]) -> str:
    """A short name for a set of candidates."""
    return blake2b(",".join(map(str, sorted(low))).encode(), digest_size=10).hexdigest()
