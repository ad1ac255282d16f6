"""Finds a tensor among others by its values alone.

An engine's results are not bit-equal to another backend's, so a tensor is recognised by distance: among those of its
shape (ignoring axes of size 1) the nearest, if it is near and no other is nearly as near. Tensors with equal values
(from Reshape and Identity) count as one: the first unused one. Constant tensors are ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.debugtools.compare.sides.executed import Print, fingerprint, print_distance

Array = NDArray[Any]
NEAR = 0.25  # of the largest value: FP16, and more than one fault, stay below
CLEAR = 0.25
_ALIKE = 1e-9


@dataclass(frozen=True)
class Match:
    """The tensor recognised for a value. distance: relative to the largest value. alike: others with equal values."""

    name: str
    distance: float
    alike: tuple[str, ...] = ()


class Known:
    """Tensors with names and fingerprints. One that was matched is not used again if another is as good."""

    def __init__(self, prints: Mapping[str, Print]) -> None:
        self._by_shape: dict[tuple[int, ...], dict[str, Print]] = {}
        for name, found in prints.items():
            if _tells(found):
                self._by_shape.setdefault(_squeezed(found.shape), {})[name] = found
        self._taken: set[str] = set()

    def find(self, array: Array) -> Match | None:
        """Return the tensor that an array is; None if none is near, or several are."""
        mine = fingerprint(np.squeeze(array))
        if mine is None or not _tells(mine):
            return None
        there = self._by_shape.get(mine.shape, {})
        near = sorted((print_distance(mine, Print(mine.shape, other.values)), name) for name, other in there.items())
        if not near or near[0][0] > NEAR:
            return None
        distance, name = near[0]
        alike = [other for _, other in near if _same(there[name], there[other])]
        apart = next((found for found, other in near if other not in alike), np.inf)
        if distance > CLEAR * apart:
            return None
        free = [other for other in there if other in alike and other not in self._taken]
        chosen = free[0] if free else name
        self._taken.add(chosen)
        return Match(chosen, float(distance), tuple(other for other in alike if other != chosen))


def _same(a: Print, b: Print) -> bool:
    return print_distance(Print((), a.values), Print((), b.values)) <= _ALIKE


def _tells(found: Print) -> bool:
    return bool(np.isfinite(found.values).all()) and float(np.ptp(found.values)) > 0


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
