"""Codebooks: types of 4 bits whose 16 levels lie at no equal distance, over the largest value of a block."""

import numpy as np

from layerwise._tool.backends.arrays import Array

_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
_HALF = (0.0, 5.208333333e-03, 2 / 3, 1.0, 1 / 3, 0.5, 1 / 6, 0.25)
BOOKS = {
    "nf4": np.asarray(_NF4, np.float32),
    "fp4": np.asarray([*_HALF, *(-level for level in _HALF)], np.float32),
}
"""The levels of bitsandbytes' types by their codes, as MatMulBnb4 has them."""


def cells(levels: Array, kind: str) -> Array:
    """The distance between the ends of what each of a codebook's levels is the nearest to."""
    known = np.unique(BOOKS[kind])
    ends = np.concatenate([known[:1], (known[1:] + known[:-1]) / 2, known[-1:]])
    return np.asarray(np.diff(ends)[np.searchsorted(known, levels)], np.float32)


def nearest_level(values: Array, kind: str) -> Array:
    """The nearest levels of a codebook; values over the scale."""
    levels = np.unique(BOOKS[kind])
    middles = (levels[1:] + levels[:-1]) / 2
    return np.asarray(levels[np.searchsorted(middles, values)], np.float32)
