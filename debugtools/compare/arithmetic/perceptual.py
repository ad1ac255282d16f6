"""LPIPS, the perceptual distance of images (Zhang et al. 2018), where the extra `perceptual` is installed."""

from functools import lru_cache
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.installed import require


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
