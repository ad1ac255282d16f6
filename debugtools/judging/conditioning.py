"""Whether an error is a fault or rounding that the candidate magnifies.

The inputs are moved by one unit roundoff of their dtype, up or down at random, and the candidate runs again. Where that
moves the output by as much as it is off, nothing can be concluded from the error: any correct evaluation is as far off
(the idea of stochastic arithmetic: Vignes 1974; Parker, "Monte Carlo Arithmetic", 1997).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.tensors import dtype_name, is_floating
from debugtools.compare.metrics import Comparison, compare_arrays
from debugtools.compare.tolerance import UNIT_ROUNDOFF, Rule

Array = NDArray[Any]
MARGIN = 8.0
"""How many times the movement an error must be to count as a fault."""
LARGE = 0.1
"""Relative L2 error that is never put down to rounding."""


def moved(feed: Mapping[str, Array]) -> dict[str, Array]:
    """The feed with each floating value moved by its unit roundoff, up or down at random, the same each time."""
    random = np.random.default_rng(0)
    return {name: _moved(array, random) for name, array in feed.items()}


def _moved(array: Array, random: np.random.Generator) -> Array:
    name = dtype_name(array)
    if not is_floating(name) or name not in UNIT_ROUNDOFF:
        return array
    steps = random.integers(0, 2, array.shape, np.int8) * 2 - 1
    with np.errstate(all="ignore"):
        wide: Array = array.astype(np.float64) * (1 + 2 * UNIT_ROUNDOFF[name] * steps)
        return wide.astype(array.dtype)


def may_be_rounding(error: Comparison) -> bool:
    """Whether an error is small enough to be looked into."""
    return error.rel_l2 is not None and error.rel_l2 <= LARGE


def only_magnified(error: Comparison, made: Array, again: Array) -> bool:
    """Whether the output `made` is off by no more than rounded inputs move it (to `again`)."""
    movement = compare_arrays(again, made, Rule(), metrics=()).rel_l2
    return error.rel_l2 is not None and movement is not None and error.rel_l2 <= MARGIN * movement
