"""Metrics of the elements themselves: places of indices, and images as people see them.

Arrays of indices, such as the outputs of a top-k: each row along the last axis is one ranking. A value of the first
side must be at the same place in the second, or its first place there must lie within the tolerance; the last
`tolerance` places of the first side are not checked.

LPIPS is the perceptual distance of images (Zhang et al. 2018), where the extra `perceptual` is installed.
"""

from functools import lru_cache
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError, MissingDependency

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
    try:
        import lpips
    except ImportError as error:
        raise MissingDependency(
            f"the perceptual metric needs torch and lpips: pip install 'layerwise[perceptual]' ({error})"
        ) from None
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
