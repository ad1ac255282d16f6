"""Tensors that wait for their counterparts: in memory up to a limit, beyond it in files.

So do all tensors of runners that run one after the other: all iterations of the first, then all of the next, one
session at a time.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array, Feed
from layerwise._tool.backends.filesystem.temporary import note
from layerwise._tool.backends.results.inference import IterationResult
from layerwise._tool.debugtools.compare.memory import WAITING
from layerwise._tool.debugtools.compare.sides.side import Side


class LazyArrays(Mapping[str, Array]):
    """Arrays by name, each had of `get` when it is asked for."""

    def __init__(self, names: Iterable[str], get: Callable[[str], Array]) -> None:
        self._names, self._get = dict.fromkeys(names), get

    def __getitem__(self, name: str) -> Array:
        if name not in self._names:
            raise KeyError(name)
        return self._get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class ArrayStore:
    """Arrays by key. What goes over `limit` bytes is written to `folder`, raw, and mapped back when asked for.

    What lies on a device (`backends.cuda.devices.DeviceTensor`) stays there.
    """

    def __init__(self, limit: int, folder: Path) -> None:
        self._limit = limit
        self._folder = folder
        self._held: dict[Any, Array] = {}
        self._spilled: dict[Any, tuple[Path, np.dtype[Any], tuple[int, ...]]] = {}
        self._bytes = 0
        self._files = 0

    def put(self, key: Any, array: Array) -> None:
        """Keep an array until `drop`."""
        stays = not isinstance(array, np.ndarray) or array.dtype.hasobject
        if stays or self._bytes + array.nbytes <= self._limit or not array.nbytes:
            self._held[key] = array
            self._bytes += array.nbytes
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self._files}.raw"
        self._files += 1
        note(path)
        np.ascontiguousarray(array).reshape(-1).view(np.uint8).tofile(path)
        self._spilled[key] = path, array.dtype, array.shape

    def __contains__(self, key: Any) -> bool:
        return key in self._held or key in self._spilled

    def __len__(self) -> int:
        return len(self._held) + len(self._spilled)

    def get(self, key: Any) -> Array:
        """Return an array that is here."""
        if key in self._held:
            return self._held[key]
        path, dtype, shape = self._spilled[key]
        flat = np.memmap(path, np.uint8, "r", shape=(math.prod(shape) * dtype.itemsize,))
        return np.asarray(flat).view(dtype).reshape(shape)

    def drop(self, key: Any) -> None:
        """Give an array up."""
        if key in self._held:
            self._bytes -= self._held.pop(key).nbytes
        elif key in self._spilled:
            self._spilled.pop(key)[0].unlink(missing_ok=True)

    def close(self) -> None:
        """Give all up."""
        for key in [*self._held, *self._spilled]:
            self.drop(key)


Plain = Callable[[Side, int, Feed], IterationResult]


class _Kept(LazyArrays):
    """Arrays that lie in a store."""

    def __init__(self, store: ArrayStore, key: Hashable, arrays: Mapping[str, Array]) -> None:
        super().__init__(arrays, lambda name: store.get((key, name)))
        self._store, self._key = store, key
        for name, array in arrays.items():
            store.put((key, name), array)

    def drop(self) -> None:
        for name in self:
            self._store.drop((self._key, name))


def in_sequence(
    sides: Sequence[Side], feeds: Iterable[Feed], plain: Plain, folder: Path
) -> Iterator[tuple[Feed, list[IterationResult]]]:
    """Run `plain` for each side in turn over all feeds, then give the iterations.

    What does not fit in memory meanwhile waits in `folder`.
    """
    store = ArrayStore(WAITING, folder)
    try:
        kept = [_Kept(store, ("feed", number), feed) for number, feed in enumerate(feeds)]
        results: list[list[IterationResult]] = [[] for _ in kept]
        for side in sides:
            for number, feed in enumerate(kept):
                result = plain(side, number, dict(feed))
                outputs = _Kept(store, (number, side.index), result.outputs)
                results[number].append(IterationResult(outputs, result.runtime, result.runner_name))
            side.close()
        for feed, found in zip(kept, results, strict=True):
            yield feed, found
            for arrays in (feed, *(result.outputs for result in found)):
                if isinstance(arrays, _Kept):
                    arrays.drop()
    finally:
        store.close()
