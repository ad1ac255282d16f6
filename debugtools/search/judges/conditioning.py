"""Whether an error is a fault or rounding that the candidate magnifies.

The inputs are moved by a few units roundoff of their dtype, each up or down at random, and all up; the candidate runs
on them again. Where that moves the output by as much as it is off, nothing can be concluded from the error: correct
evaluations are as far off (the idea of stochastic arithmetic: Vignes 1974; Parker, "Monte Carlo Arithmetic", 1997).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.runner import Runner
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison, compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import UNIT_ROUNDOFF, Rule

Array = NDArray[Any]
STEP = 16
"""Units roundoff by which inputs are moved."""
LARGE = 0.1
"""Relative L2 error that is never put down to rounding."""


class Rounding:
    """One candidate, run again on inputs that are rounded otherwise; not before anybody asks."""

    def __init__(self, runner: Runner, feed: Mapping[str, Array]) -> None:
        self._runner, self._feed = runner, feed
        self._known: list[Mapping[str, Array]] = []

    def explains(self, error: Comparison, name: str, made: Array) -> bool:
        """Whether output `name`, which came out as `made`, is off by no more than rounded inputs move it."""
        if error.rel_l2 is None or not error.rel_l2 <= LARGE:
            return False
        return any(error.rel_l2 <= _distance(again[name], made) for again in self._runs())

    def _runs(self) -> Iterator[Mapping[str, Array]]:
        yield from self._known
        for number in range(len(self._known), 2):
            self._known.append(self._runner.infer(moved(self._feed, at_random=number == 0)).outputs)
            yield self._known[-1]


def moved(feed: Mapping[str, Array], *, at_random: bool) -> dict[str, Array]:
    """The feed with each floating value moved by a few units roundoff: at random, the same each time, or all up."""
    random = np.random.default_rng(0) if at_random else None
    return {name: _moved(array, random) for name, array in feed.items()}


def _moved(array: Array, random: np.random.Generator | None) -> Array:
    name = dtype_name(array)
    if not is_floating(name) or name not in UNIT_ROUNDOFF:
        return array
    steps: Any = random.integers(0, 2, array.shape, np.int8) * 2 - 1 if random is not None else 1
    with np.errstate(all="ignore"):
        wide: Array = array.astype(np.float64) * (1 + STEP * UNIT_ROUNDOFF[name] * steps)
        return wide.astype(array.dtype)


def _distance(again: Array, made: Array) -> float:
    found = compare_arrays(again, made, Rule(), metrics=()).rel_l2
    return 0.0 if found is None or found != found else found
