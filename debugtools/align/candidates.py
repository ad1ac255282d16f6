"""Which groups of two sides have values that agree or come near, by their fingerprints."""

import math
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.distance import COARSE, FAR, FINE, Apart, distance, distances, tolerance
from layerwise._tool.debugtools.align.fingerprint import Fingerprint
from layerwise._tool.debugtools.align.groups import GroupGraph

_NEAREST = 4
_ROWS = 512
_CLOSE = 2e-5
_NEAR = 0.3
_Row = tuple[int, Fingerprint]
_Pair = tuple[int, int, float]


class Values:
    """Distances of groups. near: pairs of groups worth looking at, by value alone, with the smaller distance."""

    def __init__(self, first: GroupGraph, second: GroupGraph) -> None:
        self.first, self.second = first, second
        self.quantised = first.quantised or second.quantised
        self._known: dict[tuple[int, int], tuple[Apart, float]] = {}
        self.near: dict[tuple[int, int], float] = {}
        self._best: tuple[dict[int, float], dict[int, float]] = ({}, {})
        for a, b, far in self._pairs():
            if far < self.near.get((a, b), math.inf):
                self.near[a, b] = far
        for (a, b), far in self.near.items():
            for best, number in zip(self._best, (a, b), strict=True):
                if far < best.get(number, FAR):
                    best[number] = far

    def apart(self, a: int, b: int) -> tuple[Apart, float]:
        """The distances of two groups' nearest members, and within which distance they agree."""
        known = self._known.get((a, b))
        if known is None:
            known = self._known[a, b] = self._measured(a, b)
        return known

    @cached_property
    def agreeing(self) -> list[tuple[int, int]]:
        """The pairs worth looking at whose values agree."""
        bound = [[self._bound(prints) for prints in side.prints_of] for side in (self.first, self.second)]
        near = (pair for pair, far in self.near.items() if far <= max(bound[0][pair[0]], bound[1][pair[1]]))
        return [pair for pair in near if self.agree(*pair)]

    def _bound(self, prints: list[Fingerprint]) -> float:
        """Up to which distance in `near` a group may agree with another one."""
        if len(prints) == 1 and not self.quantised:
            return tolerance(prints[0], prints[0], quantised=False) + _CLOSE
        return COARSE + _CLOSE

    def agree(self, a: int, b: int, *, closely: bool = False) -> bool:
        """Whether the values of two groups agree, or are not known. closely: but for the rounding of FP32."""
        if not self.first.prints_of[a] or not self.second.prints_of[b]:
            return True
        found, within = self.apart(a, b)
        return found.nearest <= (_CLOSE if closely and within <= FINE else within)

    def nearest(self, a: int, b: int) -> bool:
        """Whether two groups are near in value, and nothing is nearer to either."""
        found = self.apart(a, b)[0]
        return found.in_order <= _NEAR and found.nearest <= self.best(a, b) + _CLOSE

    def best(self, a: int, b: int) -> float:
        """The distance of whatever comes nearest to one of the two groups."""
        return min(self._best[0].get(a, FAR), self._best[1].get(b, FAR))

    def _measured(self, a: int, b: int) -> tuple[Apart, float]:
        in_order = any_order = FAR
        within = 0.0
        for mine in self.first.prints_of[a]:
            for theirs in self.second.prints_of[b]:
                found = distance(mine, theirs)
                in_order, any_order = min(in_order, found.in_order), min(any_order, found.any_order)
                if found.nearest < FAR:
                    within = max(within, tolerance(mine, theirs, self.quantised))
        return Apart(in_order, any_order), within

    def _pairs(self) -> Iterator[_Pair]:
        floats: tuple[dict[int, list[_Row]], ...] = (defaultdict(list), defaultdict(list))
        others: tuple[dict[object, list[int]], ...] = (defaultdict(list), defaultdict(list))
        for place, side in enumerate((self.first, self.second)):
            for group in side.groups:
                for known in side.prints_of[group.number]:
                    if known.kind == "float" and known.sketch:
                        floats[place][known.size].append((group.number, known))
                    elif known.kind != "float":
                        others[place][known.kind, known.values, known.size].append(group.number)
        for size, rows in floats[0].items():
            if size in floats[1]:
                yield from _nearest(rows, floats[1][size])
        for key, numbers in others[0].items():
            yield from ((a, b, 0.0) for a, b in _zipped(numbers, others[1].get(key, [])))


def _nearest(rows: list[_Row], columns: list[_Row]) -> Iterator[_Pair]:
    """For each row and each column those that are nearest, by either distance, with the smaller of the two."""
    prints = [known for _, known in columns]
    best: dict[tuple[int, int], list[tuple[float, int, float]]] = defaultdict(list)
    numbers = np.array([number for number, _ in rows]), np.array([number for number, _ in columns])
    for at in range(0, len(rows), _ROWS):
        tables = distances([known for _, known in rows[at : at + _ROWS]], prints)
        far = np.minimum(*tables)
        for which, table in enumerate(tables):
            j = _least(table)
            i = np.arange(len(j))[:, None].repeat(j.shape[1], axis=1)
            yield from _listed(numbers[0][at + i], numbers[1][j], far[i, j])
            i = _least(table.T)
            j = np.arange(len(i))[:, None].repeat(i.shape[1], axis=1)
            if len(rows) <= _ROWS:
                yield from _listed(numbers[0][i], numbers[1][j], far[i, j])
                continue
            for column, *found in _listed(j, table[i, j], numbers[0][at + i], far[i, j]):
                best[which, column].append(tuple(found))
    for (_, column), found in best.items():
        yield from ((number, columns[column][0], each) for _, number, each in sorted(found)[:_NEAREST])


def _listed(*tables: Array) -> Iterator[tuple[Any, ...]]:
    """What stands at each place of some tables."""
    return zip(*(table.reshape(-1).tolist() for table in tables), strict=True)


def _least(table: Array) -> Array:
    count = min(_NEAREST, table.shape[1])
    if count == table.shape[1]:
        return np.argsort(table, axis=1, kind="stable")
    found: Array = np.argpartition(table, count - 1, axis=1)[:, :count]
    return found


def _zipped(one: list[int], other: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs of equal values: all of them if they are few, else those at about the same place."""
    if len(one) * len(other) <= _NEAREST * (len(one) + len(other)):
        yield from ((a, b) for a in one for b in other)
        return
    for a_place, a in enumerate(one):
        middle = a_place * len(other) // len(one)
        yield from ((a, b) for b in other[max(0, middle - 2) : middle + 3])
