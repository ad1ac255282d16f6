"""Changing outputs before they are compared."""

from collections.abc import Mapping

from layerwise.comparator.struct import IterationResult
from layerwise.util import array, is_sequence, value_or_from_dict

__all__ = ["BasePostprocessFunc", "PostprocessFunc", "TopKPostprocessFunc"]

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
        for name, value in list(iter_result.items()):
            k = value_or_from_dict(self.k, name)
            if k:
                count, axis = k if is_sequence(k) else (k, -1)
                iter_result[name] = array.topk(value, count, axis)[1]
        return iter_result


class PostprocessFunc:
    """The older spelling of the functions above."""

    @staticmethod
    def top_k(k: K | Mapping[str, K] | None = None) -> TopKPostprocessFunc:
        """TopKPostprocessFunc(k)."""
        return TopKPostprocessFunc(k)
