"""Exact order statistics: computed only when asked, with one temporary of the tensor's size at a time."""

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.fused import wide_difference, wide_magnitude
from layerwise._tool.debugtools.compare.arithmetic.kernel import CHUNK, EPSILON
from layerwise._tool.debugtools.compare.arithmetic.kinds import Arithmetic

QUANTILES = {"median": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def errors(a: Array, b: Array, how: Arithmetic, *, relative: bool, infinities_equal: bool = False) -> Array:
    """Return the flat absolute (or relative) errors of two arrays of one shape, in the dtype they are compared in."""
    first, second = a.reshape(-1), b.reshape(-1)
    kind = how.work if how.kind == "float" and not infinities_equal else np.dtype(np.float64)
    result = np.empty(a.size, kind)
    with np.errstate(all="ignore"):
        for at in range(0, a.size, CHUNK):
            part = slice(at, at + CHUNK)
            result[part] = _chunk_errors(first[part], second[part], how, relative, infinities_equal)
    return result


def _chunk_errors(x: Array, y: Array, how: Arithmetic, relative: bool, infinities_equal: bool) -> Array:
    error: Array
    magnitude: Array
    if how.kind in ("int", "wide"):
        error, magnitude = wide_difference(x, y)[0], wide_magnitude(y)
    else:
        left, right = x.astype(how.work), y.astype(how.work)
        error, magnitude = np.abs(left - right), np.abs(right)
        if infinities_equal:
            error[np.isinf(left) & (left == right)] = 0
            error = error.astype(np.float64)
    if not relative:
        return error
    if how.epsilon:
        magnitude[magnitude == 0] = EPSILON
    return np.asarray(error / magnitude)


def quantile(values: Array, q: float) -> float:
    """The q-quantile with linear interpolation; inf for an empty array (Polygraphy's rule). `values` is reordered."""
    if not values.size:
        return float("inf")
    return float(np.quantile(values, q, overwrite_input=True))


def median(values: Array) -> float:
    """The median; 0 for an empty array (Polygraphy's rule). `values` is reordered."""
    return float(np.median(values, overwrite_input=True)) if values.size else 0.0


def summary(values: Array) -> dict[str, float]:
    """Median and the 90, 95 and 99 % quantiles of a flat array that may be reordered."""
    if not values.size:
        return {"median": 0.0, "p90": float("inf"), "p95": float("inf"), "p99": float("inf")}
    with np.errstate(all="ignore"):
        found = np.quantile(values, list(QUANTILES.values()), overwrite_input=True)
    return {name: float(value) for name, value in zip(QUANTILES, found, strict=True)}
