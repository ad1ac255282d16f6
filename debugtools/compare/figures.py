"""Values and histograms of outputs that failed, as text in Polygraphy's form."""

from collections.abc import Sequence

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.stats import histogram_text
from layerwise._tool.debugtools.compare.arithmetic.kinds import arithmetic
from layerwise._tool.debugtools.compare.arithmetic.order_statistics import errors

FIGURES = 64  # rows of a comparison that have them
_FEW = 100  # elements that are all shown


def figures(a: Array, b: Array, shape_check: bool) -> Sequence[str]:
    """Return the texts for |a - b|, |a - b| / |b|, a and b; empty ones where there is nothing to show."""
    how = arithmetic(a.dtype, b.dtype)
    if how.kind in ("string", "none") or not a.size or not b.size:
        return ()
    first = second = ""
    if a.shape == b.shape:
        absolute, relative = (errors(a, b, how, relative=each).reshape(a.shape) for each in (False, True))
        first, second = _figure(_whole(absolute, a, b), None), _figure(relative, None)
    span = _span(a, b)
    return (first, second, _figure(a, span), _figure(b, span))


def _figure(array: Array, span: tuple[float, float] | None) -> str:
    parts = []
    if array.size <= _FEW:
        parts.append(f"---- Values ----\n{array}".replace("\n", "\n    "))
    if array.dtype.kind in "iu" or bool(np.isfinite(array.astype(np.float64)).all()):
        parts.append(histogram_text(array, span))
    return "\n".join(filter(None, parts))


def _whole(differences: Array, a: Array, b: Array) -> Array:
    """Absolute differences of whole numbers as such, and of booleans as booleans."""
    kinds = {a.dtype.kind, b.dtype.kind}
    if kinds == {"b"}:
        return differences.astype(np.bool_)
    exact = kinds <= set("iu") and differences.max() < 2**53
    return differences.astype(np.int64) if exact else differences


def _span(a: Array, b: Array) -> tuple[float, float] | None:
    low, high = (float(min(a.min(), b.min())), float(max(a.max(), b.max())))
    return (low, high) if np.isfinite(low) and np.isfinite(high) else None
