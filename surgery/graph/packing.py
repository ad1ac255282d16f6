"""Python lists as columns."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.graph.columns import Columns


def int32(values: Iterable[int]) -> NDArray[np.int32]:
    """Return numbers as a column of int32."""
    return np.fromiter(values, np.int32)


def lists(name: str, rows: Sequence[Sequence[int]], dtype: np.dtype[Any] | None = None) -> Columns:
    """Return rows of different lengths as two columns: `<name>_at` (start of each row, plus the end) and `<name>`."""
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    at = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    flat = np.fromiter((v for row in rows for v in row), dtype or np.dtype(np.int32), int(at[-1]))
    return {f"{name}_at": at, name: flat}


def sorted_by(names: list[str], scopes: list[int]) -> NDArray[np.int32]:
    """Return row numbers sorted by name (UTF-8), then scope, for binary search by name."""
    keys = [name.encode() for name in names]
    return int32(sorted(range(len(names)), key=lambda i: (keys[i], scopes[i])))
