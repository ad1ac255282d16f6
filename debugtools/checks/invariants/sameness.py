"""What must be the same in two runs: some rows of every tensor, or all but what stands at masked positions."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Protocol

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.checks.invariants.views import Difference, Pairs, difference, views, whole_difference


class Sameness(Protocol):
    """What must be the same in a tensor of two runs."""

    def test(self, first: Array, second: Array, axis: int | None = None) -> Difference:
        """How far apart is what must be the same. axis: of the rows; None: any."""
        ...

    def mixed(self, first: Array, second: Array) -> Array:
        """The second tensor with what must be the same taken from the first."""
        ...


class SameRows(Struct, frozen=True):
    """counts: the rows of the two runs. pairs: rows of the first, and those of the second that must be the same.

    within: both runs are of one feed, so that tensors which are alike as a whole say nothing of their rows.
    """

    counts: tuple[int, int]
    pairs: Pairs
    within: bool = False

    def test(self, first: Array, second: Array, axis: int | None = None) -> Difference:
        if self.within and axis is None and not any(True for _ in views(first, second, self.counts)):
            return Difference(whole_difference(first, second))
        return difference(first, second, self.counts, self.pairs, axis, whole=not self.within)

    def mixed(self, first: Array, second: Array) -> Array:
        view = self.test(first, second).view
        if view is None:
            return first if first.shape == second.shape else second
        rows = view.rows(second, self.counts[1]).copy()
        rows[[q for _, q in self.pairs]] = view.rows(first, self.counts[0])[[p for p, _ in self.pairs]]
        return view.put(second, rows, self.counts[1])


class Whole(Struct, frozen=True):
    """Everything must be the same."""

    def test(self, first: Array, second: Array, axis: int | None = None) -> Difference:
        return Difference(whole_difference(first, second))

    def mixed(self, first: Array, second: Array) -> Array:
        return first


class KeptPositions(Struct, frozen=True):
    """What stands at positions that a mask keeps. kept: of a sequence, whether a position is kept.

    Every axis as long as the sequence is one of positions; where there is none, every axis whose length is a multiple.
    """

    kept: tuple[bool, ...]

    def test(self, first: Array, second: Array, axis: int | None = None) -> Difference:
        """axis: of the positions; None: any."""
        if axis is not None and first.shape == second.shape:
            places = np.flatnonzero(np.array(self.kept))
            return Difference(whole_difference(np.take(first, places, axis), np.take(second, places, axis)))
        return Difference(self._best(first, second)[0])

    def mixed(self, first: Array, second: Array) -> Array:
        places = self._best(first, second)[1]
        if places is None:
            return first if first.shape == second.shape else second
        made = second.copy()
        made[places] = first[places]
        return made

    def _best(self, first: Array, second: Array) -> tuple[float, tuple[Array, ...] | None]:
        best, where = whole_difference(first, second), None
        if best == 0.0 or first.shape != second.shape:
            return best, where
        for places in self._places(first.shape):
            error = whole_difference(first[places], second[places])
            if error < best:
                best, where = error, places
        return best, where

    def _places(self, shape: Sequence[int]) -> Iterator[tuple[Array, ...]]:
        exact = len(self.kept) in shape
        choices = [list(self._along(length, exact)) for length in shape]
        return (np.ix_(*picked) for picked in product(*choices)) if shape else iter(())

    def _along(self, length: int, exact: bool) -> Iterator[Array]:
        """The places of an axis that are kept."""
        kept = np.array(self.kept)
        times, rest = divmod(length, len(kept))
        if rest or not times or (exact and times > 1):
            yield np.arange(length)
            return
        yield np.flatnonzero(np.tile(kept, times))
        if times > 1:
            yield np.flatnonzero(np.repeat(kept, times))
