"""Comparing arrays of indices, such as the outputs of a top-k.

Each row along the last axis is one ranking. A value of the first side must be at the same place in the second, or its
first place there must lie within the tolerance; the last `tolerance` places of the first side are not checked.
"""

import numpy as np

from layerwise._tool.backends.arrays import Array

_BLOCK = 1 << 20  # elements sorted at a time


def places_checked(a: Array, tolerance: int) -> bool:
    """Whether any place of an array (..., K) is checked: a tolerance of K and more leaves none."""
    return bool(a.size) and (a.ndim == 0 or a.shape[-1] > tolerance)


def indices_mismatches(a: Array, b: Array, tolerance: int) -> int:
    """Count the values of `a` (..., K) that are further than `tolerance` places from where `b` holds them.

    Raises ValueError for arrays of different shapes.
    """
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {a.shape} and {b.shape}")
    if a.ndim == 0:
        return int(a.item() != b.item())
    length = a.shape[-1]
    kept = length - tolerance if tolerance > 0 else length
    if kept <= 0 or a.size == 0:
        return 0
    left, right = a.reshape(-1, length)[:, :kept], b.reshape(-1, length)
    rows = np.flatnonzero((left != right[:, :kept]).any(axis=1))
    step = max(1, _BLOCK // (kept * length))
    return sum(
        _mismatches(left[some], right[some], tolerance) for some in np.array_split(rows, -(-rows.size // step) or 1)
    )


def _mismatches(left: Array, right: Array, tolerance: int) -> int:
    """Rows (R, kept) against rows (R, K)."""
    if not left.size:
        return 0
    order = np.argsort(right, axis=-1, kind="stable")
    count = 0
    for row, values, ranking in zip(left, right, order, strict=True):
        ranked = values[ranking]
        place = np.searchsorted(ranked, row)
        found = np.minimum(place, ranked.size - 1)
        exists = ranked[found] == row
        near = np.abs(ranking[found] - np.arange(row.size)) <= tolerance
        same = row == values[: row.size]
        count += int(np.count_nonzero(~(same | (exists & near))))
    return count
