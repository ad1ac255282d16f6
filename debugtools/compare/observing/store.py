"""Tensors that wait for their counterparts: in memory up to a limit, beyond it in files."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.filesystem.temporary import note


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
