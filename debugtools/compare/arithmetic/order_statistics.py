"""What sums do not give: exact order statistics, places of indices, images as people see them; shapes made alike.

Order statistics are computed only when asked, with one temporary of the tensor's size at a time.

Arrays of indices, such as the outputs of a top-k: each row along the last axis is one ranking. A value of the first
side must be at the same place in the second, or its first place there must lie within the tolerance; the last
`tolerance` places of the first side are not checked.

LPIPS is the perceptual distance of images (Zhang et al. 2018), where the extra `perceptual` is installed.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.installed import require
from layerwise._tool.debugtools.compare.arithmetic.fused import (
    wide_difference,
    wide_magnitude,
)
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
    ratio = np.asarray(error / magnitude)
    if how.kind in ("int", "wide"):
        ratio[error == 0] = 0
    return ratio


def quantile(values: Array, q: float) -> float:
    """The q-quantile with linear interpolation; inf for an empty array (Polygraphy's rule). `values` is reordered."""
    if not values.size:
        return float("inf")
    return float(np.quantile(values, q, overwrite_input=True))


def median(values: Array) -> float:
    """The median; 0 for an empty array (Polygraphy's rule). `values` is reordered."""
    return float(np.median(values, overwrite_input=True)) if values.size else 0.0


def summary(values: Array) -> dict[str, float]:
    """Median and the 90, 95 and 99 % quantiles of a flat array that may be reordered, as `np.median` and `np.quantile`
    have them: their calls take longer than the work on small arrays, and import masked arrays for 20 ms.
    """
    if not values.size:
        return {"median": 0.0, "p90": float("inf"), "p95": float("inf"), "p99": float("inf")}
    last = values.size - 1
    below = {name: int(last * q) for name, q in QUANTILES.items()}
    values.partition(sorted({last, *below.values(), *(min(at + 1, last) for at in below.values())}))
    with np.errstate(all="ignore"):
        if np.isnan(values[-1]):
            return dict.fromkeys(QUANTILES, float("nan"))
        found = {
            name: _between(values[at], values[min(at + 1, last)], last * q - at)
            for (name, q), at in zip(QUANTILES.items(), below.values(), strict=True)
        }
        if last % 2:  # np.median rounds to the type of the values
            low, high = map(float, values[last // 2 : last // 2 + 2])
            found["median"] = low if low == high != 0 else float(values.dtype.type((low + high) / 2))
        return found


def _between(low: Any, high: Any, part: float) -> float:
    """NumPy's linear interpolation, of which each half starts at its own end; infinite where both ends are."""
    gap = high - low
    if not np.isfinite(gap) and (low == high or not part):
        return float(low)
    return float(high) - float(gap) * (1 - part) if part >= 0.5 else float(low) + float(gap) * part


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


@lru_cache(maxsize=1)
def _model() -> Any:
    lpips = require("lpips", "the perceptual metric")
    try:
        return lpips.LPIPS(net="alex", verbose=False).eval()
    except Exception as error:  # its weights are downloaded: anything may go wrong
        raise LayerwiseError(f"LPIPS did not load: {error}") from None


def lpips_distance(a: Array, b: Array) -> float:
    """Return LPIPS of two images or batches: (C,H,W), (H,W,C), (B,C,H,W) or (B,H,W,C), at most 3 channels if last.

    Values in [0,1] or [0,255] are brought to [-1,1]. Raises MissingDependency without lpips, and LayerwiseError for
    arrays that are no images.
    """
    model = _model()
    import torch

    with torch.no_grad():
        distance = model(torch.from_numpy(as_image(a)), torch.from_numpy(as_image(b)))
    return float(distance.mean())


def as_image(array: Array) -> Array:
    """Return the array as float32 (B, 3, H, W) in [-1, 1]."""
    if array.ndim not in (3, 4):
        raise LayerwiseError(f"the perceptual metric needs images of rank 3 or 4, not of shape {array.shape}")
    image = array.astype(np.float32)
    if image.shape[-1] <= 3 and image.shape[-3] > 3:
        image = np.moveaxis(image, -1, -3)
    image = image[None] if image.ndim == 3 else image
    if image.size and image.max() > 1.0:
        image = image / 255.0
    if image.size and image.min() >= 0.0:
        image = image * 2.0 - 1.0
    channels = [min(c, image.shape[1] - 1) for c in range(3)]
    return np.ascontiguousarray(image[:, channels])


def match_shapes(a: Array, b: Array) -> tuple[Array, Array, str]:
    """Return both arrays in one shape where a transpose or a reshape can do it, and what was done.

    As Polygraphy does: the second is reshaped when the element counts agree after a transpose has been tried, and
    transposed when its dimensions are a permutation of the first's (equal lengths are taken in order). Views, no
    copies where the layout allows. If nothing fits, the arrays come back as they are.
    """
    if a.shape == b.shape:
        return a, b, ""
    if sorted(a.shape) == sorted(b.shape):
        order = _permutation(b.shape, a.shape)
        return a, b.transpose(order), f"second side transposed by {order}"
    if a.size == b.size:
        return a, b.reshape(a.shape), f"second side reshaped from {b.shape} to {a.shape}"
    return a, b, ""


def _permutation(have: tuple[int, ...], want: tuple[int, ...]) -> tuple[int, ...]:
    free = list(range(len(have)))
    order = []
    for length in want:
        axis = next(i for i in free if have[i] == length)
        free.remove(axis)
        order.append(axis)
    return tuple(order)
