"""Changing outputs before they are compared."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from layerwise.comparator.struct import IterationResult

K = int | tuple[int, int]


class BasePostprocessFunc:
    """Takes an IterationResult and returns the one to compare."""

    def __call__(self, iter_result: IterationResult) -> IterationResult:
        raise NotImplementedError


class TopKPostprocessFunc(BasePostprocessFunc):
    """Replaces outputs by the indices of their K largest values, largest first.

    k: a number, (number, axis), or output name -> either ("" for all others); 10 along the last axis by default.
    """

    def __init__(self, k: K | Mapping[str, K] | None = None) -> None:
        self.k = 10 if k is None else k

    def __call__(self, iter_result: IterationResult) -> IterationResult:
        for name, array in iter_result.items():
            k = self.k.get(name, self.k.get("")) if isinstance(self.k, Mapping) else self.k
            if k:
                count, axis = k if isinstance(k, tuple) else (k, -1)
                iter_result[name] = top_k(array, count, axis)
        return iter_result


def top_k(array: Any, count: int, axis: int = -1) -> Any:
    """Indices of the `count` largest values along `axis`, largest first; the lower index first among equals."""
    order = np.flip(np.argsort(np.flip(array, axis), axis=axis, kind="stable"), axis)
    return np.take(array.shape[axis] - 1 - order, range(min(count, array.shape[axis])), axis)


class PostprocessFunc:
    """The older spelling of the functions above."""

    @staticmethod
    def top_k(k: K | Mapping[str, K] | None = None) -> TopKPostprocessFunc:
        """TopKPostprocessFunc(k)."""
        return TopKPostprocessFunc(k)
