"""Columns of a table that grows: numbers, strings of few kinds, modules."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import UNSET, UnsetType

from layerwise._tool.surgery.origin.origin import Path


class Column:
    """A numpy array that grows by doubling."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._data = np.zeros(256, dtype)

    def put(self, places: Sequence[int], values: Sequence[Any]) -> None:
        while places and max(places) >= len(self._data):
            self._data = np.concatenate([self._data, np.zeros_like(self._data)])
        self._data[places] = values

    def first(self, count: int) -> npt.NDArray[Any]:
        return self._data[:count]


class Labels:
    """Strings of few kinds, as codes."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self._codes: dict[str, int] = {}
        self.column = Column(np.int32)

    def put(self, places: Sequence[int], labels: Sequence[str]) -> None:
        for label in labels:
            if label not in self._codes:
                self._codes[label] = len(self.kinds)
                self.kinds.append(label)
        self.column.put(places, [self._codes[label] for label in labels])


class Paths:
    """Modules, as codes; -1 where there is none."""

    def __init__(self) -> None:
        self.kinds: list[Path] = []
        self._codes: dict[Path, int] = {}
        self.column = Column(np.int32)

    def put(self, places: Sequence[int], paths: Sequence[Path | UnsetType]) -> None:
        for path in paths:
            if path is not UNSET and path not in self._codes:
                self._codes[path] = len(self.kinds)
                self.kinds.append(path)
        self.column.put(places, [-1 if path is UNSET else self._codes[path] for path in paths])
