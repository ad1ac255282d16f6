"""Arrays of every type, for tests that must hold for all of them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.tensors import DTYPES

Array = NDArray[Any]
NAMES = [row.name for row in DTYPES]
NUMPY_NAMES = [row.name for row in DTYPES if row.numpy.isbuiltin == 1 and row.name != "string"]


def sample(name: str, shape: tuple[int, ...] = (2, 3), seed: int = 0) -> Array:
    """An array of a type, by name, with values that differ."""
    dtype = next(row.numpy for row in DTYPES if row.name == name)
    rng = np.random.default_rng(seed)
    if name == "string":
        texts = np.array(["", "plain", "é☃", "\x1b[31m", "[bold]", '"quoted"\n'], object)
        return np.array(texts[rng.integers(0, len(texts), shape)], object)
    if name.startswith("complex"):
        return np.asarray(rng.random(shape) + 1j * rng.random(shape)).astype(dtype)
    drawn = rng.standard_normal(shape) if "float" in name else rng.integers(0, 2, shape)
    return np.asarray(drawn).astype(dtype)


def same(a: Array, b: Array) -> bool:
    """True for arrays of one type and shape with equal bits (text: equal text)."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    if a.dtype == object:
        return bool(np.all(a == b))
    return a.tobytes() == b.tobytes()
