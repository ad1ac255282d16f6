"""Tensors of whole numbers against the truth: they do not round, but what they are made of may."""

import math

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.truth.deviation import Unit

_TIES = frozenset({"TopK", "NonMaxSuppression", "Unique", "Multinomial"})


def whole_numbers(x: Array, truth: Array, unit: Unit, *, quantized: bool, alone: bool, op: str) -> float | str:
    """Return how many times what rounding explains `x` is off, or why there is no number.

    quantized: they are the steps of QuantizeLinear, of which those go either way that lie within a rounding of the
    middle between two. alone: one node makes them of what was fed, so that they must be the same. op: the last node's.
    """
    if x.shape != truth.shape:
        return f"in FP64 its shape is {truth.shape}, not {x.shape}"
    if x.dtype.kind in "cO" or truth.dtype.kind in "cO":
        return f"values of type {x.dtype}"
    off = x.astype(np.float64) - truth.astype(np.float64)
    count = int(np.count_nonzero(off))
    if not count:
        return 0.0
    if quantized:
        largest = float(np.abs(truth.astype(np.float64)).max())
        return math.sqrt(float(off.ravel() @ off.ravel()) / off.size / (4 * unit.roundoff * largest + 1 / off.size))
    if alone and op not in _TIES:
        return math.inf
    return f"{count} of {off.size} whole numbers are not the truth's: rounding before them may have decided"
