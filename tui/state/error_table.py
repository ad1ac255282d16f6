"""The layer rows of one comparison as columns: what the Errors screen sorts, filters and draws."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tui.state.packed_rows import PackedRows

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

FAILED, PASSED, UNKNOWN = 0, 1, 2
BATCH = 512
NUMBERS = ("max_abs", "max_rel", "mean_abs", "mean_rel", "rel_l2", "l2", "cosine", "psnr", "snr", "ampl")
WHOLE = ("iteration", "i", "size", "over")
LABELS = ("op", "mode", "finding", "dtype")


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


def number(value: object) -> float:
    """A float column's value; null and what is no number are NaN."""
    return float(value) if isinstance(value, (int, float)) else float("nan")


def side_text(value: object) -> str:
    """Both sides' dtype as one label: `float32`, or `float32/float16` where they differ."""
    if not isinstance(value, (list, tuple)):
        return str(value or "")
    kinds = list(dict.fromkeys(str(item) for item in value))
    return "/".join(kinds)


class ErrorTable:
    """Rows of the table "layers" (one per iteration, pair and tensor), the newest report of a row winning."""

    def __init__(self) -> None:
        self.count = 0
        self.changes = 0
        self.tensors: list[str] = []
        self.nodes: list[str] = []
        self._rows = PackedRows()
        self._places: dict[int, int] = {}
        self._latest = Column(np.int32)
        self._numbers = {name: Column(np.float64) for name in NUMBERS}
        self._whole = {name: Column(np.int64) for name in WHOLE}
        self._labels = {name: Labels() for name in LABELS}
        self._verdict = Column(np.int8)
        self._nan = Column(np.int64)
        self._inf = Column(np.int64)
        self._pair = Column(np.int32)
        self._new: list[tuple[int, int, Mapping[str, Any]]] = []

    def __len__(self) -> int:
        return self.count

    def add(self, row: Mapping[str, Any]) -> int:
        """Take a row as the journal has it and return its place; a row seen before is replaced."""
        tensor = str(row.get("tensor", ""))
        pair = row.get("pair") or (0, 1)
        key = hash((row.get("iteration", 0), pair[0], pair[1], tensor))
        place = self._places.get(key, self.count)
        if place == self.count:
            self._places[key] = place
            self.count += 1
            self.tensors.append(tensor)
            self.nodes.append(str(row.get("node", "")))
        self.changes += 1
        self._new.append((place, self._rows.append(dict(row)), row))
        if len(self._new) >= BATCH:
            self._fill()
        return place

    def _fill(self) -> None:
        """Bring the rows that came since the last look into the columns, all at once."""
        new, self._new = self._new, []
        if not new:
            return
        places = [place for place, _, _ in new]
        rows = [row for _, _, row in new]
        self._latest.put(places, [packed for _, packed, _ in new])
        for name, column in self._numbers.items():
            column.put(places, [number(row.get(name)) for row in rows])
        for name, whole in self._whole.items():
            whole.put(places, [_whole(row.get(name)) for row in rows])
        for name, labels in self._labels.items():
            labels.put(places, [side_text(row.get(name)) for row in rows])
        self._verdict.put(places, [_verdict(row.get("passed")) for row in rows])
        self._nan.put(places, [_total(row.get("nan")) for row in rows])
        self._inf.put(places, [_total(row.get("inf")) for row in rows])
        self._pair.put(places, [int((row.get("pair") or (0, 1))[0]) for row in rows])

    def row(self, place: int) -> dict[str, Any]:
        """Return the whole row, as the journal has it."""
        self._fill()
        return self._rows[int(self._latest.first(self.count)[place])]

    def numbers(self, name: str) -> Floats:
        """Return a column of numbers (NaN where unknown), one per row in order of arrival."""
        self._fill()
        if name in self._numbers:
            return self._numbers[name].first(self.count)
        if name in self._whole:
            return self._whole[name].first(self.count).astype(np.float64)
        extra = {"nan": self._nan, "inf": self._inf, "pair": self._pair}
        return extra[name].first(self.count).astype(np.float64)

    def labels(self, name: str) -> tuple[Ints, list[str]]:
        """Return a column of label codes and the label of each code."""
        self._fill()
        labels = self._labels[name]
        return labels.column.first(self.count), labels.kinds

    def verdicts(self) -> npt.NDArray[np.int8]:
        """Return FAILED, PASSED or UNKNOWN per row."""
        self._fill()
        return self._verdict.first(self.count)

    def found(self, kinds: Iterable[str] | None = None) -> npt.NDArray[np.bool_]:
        """Return which rows have a finding (of `kinds`, or any at all)."""
        codes, names = self.labels("finding")
        wanted = [name != "" if kinds is None else name in set(kinds) for name in names]
        return np.array(wanted, bool)[codes] if names else np.zeros(0, bool)

    def in_graph_order(self) -> Ints:
        """Return the places sorted by iteration, pair and position in the graph."""
        keys = (self.numbers("i"), self.numbers("pair"), self.numbers("iteration"))
        return np.lexsort(keys).astype(np.int32)

    def first_bad(self) -> int:
        """Return the place of the failed row that comes first in the graph (earliest iteration), or -1."""
        order = self.in_graph_order()
        bad = order[self.verdicts()[order] == FAILED]
        return int(bad[0]) if len(bad) else -1


def _verdict(passed: object) -> int:
    return UNKNOWN if passed is None else PASSED if passed else FAILED


def _whole(value: object) -> int:
    return value if isinstance(value, int) else -1


def _total(value: object) -> int:
    if isinstance(value, (list, tuple)):
        return sum(int(part) for part in value if isinstance(part, (int, float)))
    return int(value) if isinstance(value, (int, float)) else 0
