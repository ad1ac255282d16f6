"""Finding a tensor among others by its values alone.

An engine never gives the very bits of another backend, so a tensor is known by how close it is: of those of its shape
(axes of size 1 aside) the nearest, if it is near and no other is nearly as near. Tensors with the same values (what
Reshape and Identity give) are one place: the first of them that is not taken. Constant tensors tell nothing.
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
    """The tensor that a value is. distance: of the largest value. alike: others that have the same values."""

    name: str
    distance: float
    alike: tuple[str, ...] = ()


class Known:
    """Tensors with names, as prints. One that was found is not found again where another is as good."""

    def __init__(self, prints: Mapping[str, Print]) -> None:
        self._by_shape: dict[tuple[int, ...], dict[str, Print]] = {}
        for name, found in prints.items():
            if _tells(found):
                self._by_shape.setdefault(_squeezed(found.shape), {})[name] = found
        self._taken: set[str] = set()

    def find(self, array: Array) -> Match | None:
        """The tensor that an array is; None where none is near, or several are."""
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
