"""How probably a set of candidates keeps the bound, by the sets that were measured."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.debugtools.search.lens.knapsack import Item

_PAIR, _MORE = 0.3, 0.02
_MOST = 1e12  # times the bound's square; what is beyond is as hopeless
_CHANCE = 0.02  # a set of less probability is not tried


class Belief:
    """What all sets of a few candidates come to on one output, by those that were measured.

    The square of a set is the sum of its members' and, of each pair, twice the root of both times a number that is not
    known (normally distributed, spread `_PAIR`); what more than two do together is noise (`_MORE` of the sum).
    """

    def __init__(self, items: Sequence[Item]) -> None:
        count = len(items)
        alone = np.array([item.squares[0] for item in items])
        self._kept = (np.arange(1 << count)[:, None] >> np.arange(count) & 1).astype(np.bool_)
        self._costs = self._kept @ np.array([item.cost for item in items])
        must = ~np.isfinite(alone)
        self._open: NDArray[np.bool_] = np.all(self._kept[:, must], axis=1)
        low = (~self._kept & ~must).astype(np.float32)
        squares = np.where(must, 0.0, np.minimum(alone, _MOST)).astype(np.float32)
        one, other = np.triu_indices(count, 1)
        self._pairs = low[:, one] * low[:, other] * (2 * _PAIR * np.sqrt(squares[one] * squares[other]))
        sums = (low @ squares).astype(np.float64)
        self._rest = (_MORE * sums) ** 2 + 1e-12
        self._mean, self._spread = sums, np.einsum("ij,ij->i", self._pairs, self._pairs, dtype=np.float64)
        self._parts: list[NDArray[np.float32]] = []

    def learn(self, kept: frozenset[int], square: float | None, *, judged: bool) -> None:
        """A set was measured; square: over the bound's, None: it is not finite. judged: it need not be asked for."""
        at = _place(kept)
        self._open[at] &= not judged
        if square is None:
            return
        together = self._pairs @ self._pairs[at]
        for part in self._parts:
            together -= part * part[at]
        size = math.sqrt(max(float(together[at]), 0.0) + self._rest[at])
        told = together / np.float32(size)
        self._mean += told * ((min(square, _MOST) - self._mean[at]) / size)
        self._spread -= np.square(told, dtype=np.float64)
        self._parts.append(told)

    def next(self, cost: float, room: float) -> frozenset[int] | None:
        """The set to measure next, of those that cost less: the cheapest that probably comes to `room` at most, else
        what promises most; None where no set has a chance.
        """
        sets = np.flatnonzero(self._open & (self._costs < cost - 1e-9 * self._costs[-1]))
        chance = self._chance(sets, room)
        sets, chance = sets[chance >= _CHANCE], chance[chance >= _CHANCE]
        if not sets.size:
            return None
        probable = np.flatnonzero(chance >= 0.5)
        if probable.size:
            first = probable[np.lexsort((-chance[probable], self._costs[sets[probable]]))[0]]
        else:
            first = np.argmax(chance * (min(cost, float(self._costs[-1])) - self._costs[sets]))
        return frozenset(map(int, np.flatnonzero(self._kept[sets[first]])))

    def chance(self, kept: frozenset[int], room: float) -> float:
        """How probable it is that a set that was not measured comes to `room` at most."""
        at = _place(kept)
        return float(self._chance(np.array([at]), room)[0]) if self._open[at] else 0.0

    def _chance(self, sets: NDArray[np.int64], room: float) -> NDArray[np.float64]:
        spread = np.maximum(self._spread[sets], 0) + self._rest[sets]
        far = (room - self._mean[sets]) / np.sqrt(2 * spread)
        return np.array([0.5 + 0.5 * math.erf(each) for each in far])


def _place(kept: Iterable[int]) -> int:
    return sum(1 << k for k in kept)
