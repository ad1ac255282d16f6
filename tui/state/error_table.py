"""The layer rows of one comparison as columns: what the Errors screen sorts, filters and draws."""

import zlib
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import UNSET, structs

from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.locate.rows import SuspectRow
from layerwise._tool.surgery.origin.origin import Path
from layerwise._tool.tui.state.columns import Column, Labels, Paths
from layerwise._tool.tui.state.lens_effects import LensEffects

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]

FAILED, PASSED, UNKNOWN = 0, 1, 2
BATCH = 512
NUMBERS = ("max_abs", "max_rel", "mean_abs", "mean_rel", "rel_l2", "l2", "cosine", "psnr", "snr", "ampl",
           "local", "local_abs", "times", "suspect")  # fmt: skip
WHOLE: dict[str, Callable[[LayerRow], int | None]] = {
    "iteration": lambda row: row.iteration, "i": lambda row: row.i, "size": lambda row: row.size,
    "over": lambda row: row.over, "nan": lambda row: sum(row.nan), "inf": lambda row: sum(row.inf),
    "pair": lambda row: row.pair[0],
}  # fmt: skip
LABELS = ("op", "mode", "finding", "dtype", "diagnosis")

LENS = ("effect", "gain")
FAULTS = ("kernel", "ill-conditioned", "overflow", "nan", "quantisation", "saturation")
"""Diagnoses of a layer that brings an error in, or makes one large."""
BLOCK = 128


class PackedRows:
    """An append-only list of rows, kept as compressed blocks of `BLOCK` rows.

    A layer row is about 1 KB; packed it is about 100 bytes, so 100,000 rows are 10 MB and not 300.
    """

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._open: list[LayerRow] = []
        self._read: tuple[int, list[LayerRow]] = (-1, [])

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK + len(self._open)

    def append(self, row: LayerRow) -> int:
        """Add a row and return its number."""
        self._open.append(row)
        if len(self._open) == BLOCK:
            self._blocks.append(zlib.compress(msgspec.msgpack.encode(self._open), 1))
            self._open = []
        return len(self) - 1

    def __getitem__(self, number: int) -> LayerRow:
        if not 0 <= number < len(self):
            raise IndexError(number)
        block, place = divmod(number, BLOCK)
        return self._rows(block)[place]

    def _rows(self, block: int) -> list[LayerRow]:
        if block == len(self._blocks):
            return self._open
        if self._read[0] != block:
            self._read = (block, msgspec.msgpack.decode(zlib.decompress(self._blocks[block]), type=list[LayerRow]))
        return self._read[1]


def number(value: object) -> float:
    """A float column's value; NaN where there is none."""
    return float(value) if isinstance(value, (int, float)) else float("nan")


def side_text(value: object) -> str:
    """Both sides' dtype as one label: `float32`, or `float32/float16` where they differ."""
    if not isinstance(value, (list, tuple)):
        return str(value or "")
    kinds = list(dict.fromkeys(str(item) for item in value))
    return "/".join(kinds)


class ErrorTable:
    """Rows of the table "layers" (one per iteration, pair and tensor), the newest report of a row winning.

    has_local: some rows say what the layer does on the reference's inputs, and a diagnosis. imprecise: most layers are
    off alike, so that only suspects are at fault. has_truth: some rows say how far the layer is from the truth.
    has_modules: some rows say which module they come from; noted: and which line, so that names need not tell it.
    effects: what a lens measured.
    """

    def __init__(self, effects: LensEffects | None = None) -> None:
        self.effects = LensEffects() if effects is None else effects
        self.count = 0
        self.changes = 0
        self.tensors: list[str] = []
        self.nodes: list[str] = []
        self._rows = PackedRows()
        self._places: dict[int, int] = {}
        self._keys: list[int] = []
        self._latest = Column(np.int32)
        self._numbers = {name: Column(np.float64) for name in NUMBERS}
        self._whole = {name: Column(np.int64) for name in WHOLE}
        self._labels = {name: Labels() for name in LABELS}
        self._verdict = Column(np.int8)
        self._new: list[tuple[int, int, LayerRow]] = []
        self._modules = Paths()
        self.has_local = self.has_truth = self.has_modules = self.noted = False
        self.imprecise = False
        self._local: dict[int, tuple[Any, Any, Any]] = {}
        self._suspects: dict[int, str] = {}
        self._joined: list[int] = []

    def __len__(self) -> int:
        return self.count

    def add(self, row: LayerRow) -> int:
        """Take a row and return its place; a row seen before is replaced."""
        key = hash(row.key)
        place = self._places.get(key, self.count)
        if place == self.count:
            self._places[key] = place
            self.count += 1
            self._keys.append(key)
            self.tensors.append(row.tensor)
            self.nodes.append(row.node)
        self.changes += 1
        self.has_local = self.has_local or row.diagnosis is not UNSET
        self.has_truth = self.has_truth or row.truth is not UNSET
        self.has_modules = self.has_modules or row.module is not UNSET
        self.noted = self.noted or row.source is not UNSET
        if key in self._local or key in self._suspects:
            self._joined.append(place)
        self._new.append((place, self._rows.append(row), row))
        if len(self._new) >= BATCH:
            self._fill()
        return place

    def join(self, row: LayerRow) -> None:
        """Take local error and diagnosis of a tensor, for the row of the same tensor, come it before or after."""
        key = hash(row.key)
        self._local[key] = row.local, row.local_abs, row.diagnosis
        self._note_joined(key)

    def accuse(self, row: SuspectRow) -> None:
        """Take a suspect; of its tensors' rows its diagnosis is the one that counts."""
        for name in row.outputs:
            key = hash(LayerRow(iteration=row.iteration, tensor=name).key)
            self._suspects[key] = row.diagnosis
            self._note_joined(key)

    def _note_joined(self, key: int) -> None:
        self.has_local = True
        if key in self._places:
            self.changes += 1
            self._joined.append(self._places[key])

    def _fill(self) -> None:
        """Bring what came since the last look into the columns, all at once."""
        new, self._new = self._new, []
        if new:
            self._fill_rows(new)
        joined, self._joined = self._joined, []
        if joined:
            self._fill_local([place for place in joined if self._keys[place] in self._local])
            accused = [place for place in joined if self._keys[place] in self._suspects]
            self._numbers["suspect"].put(accused, [1.0] * len(accused))
            self._labels["diagnosis"].put(accused, [self._suspects[self._keys[place]] for place in accused])

    def _fill_local(self, places: list[int]) -> None:
        found = [self._local[self._keys[place]] for place in places]
        self._numbers["local"].put(places, [number(local) for local, _, _ in found])
        self._numbers["local_abs"].put(places, [number(largest) for _, largest, _ in found])
        self._labels["diagnosis"].put(places, [side_text(word) for _, _, word in found])

    def _fill_rows(self, new: list[tuple[int, int, LayerRow]]) -> None:
        places = [place for place, _, _ in new]
        rows = [row for _, _, row in new]
        self._latest.put(places, [packed for _, packed, _ in new])
        for name, column in self._numbers.items():
            column.put(places, [number(getattr(row, name, None)) for row in rows])
        for name, column in self._whole.items():
            column.put(places, [-1 if (whole := WHOLE[name](row)) is None else whole for row in rows])
        for name, labels in self._labels.items():
            labels.put(places, [side_text(getattr(row, name)) for row in rows])
        self._verdict.put(places, [_verdict(row) for row in rows])
        self._modules.put(places, [row.module for row in rows])

    def row(self, place: int) -> LayerRow:
        """Return the whole row, with what was joined to it."""
        self._fill()
        row = self._rows[int(self._latest.first(self.count)[place])]
        local, largest, word = self._local.get(self._keys[place], (row.local, row.local_abs, row.diagnosis))
        word = self._suspects.get(self._keys[place]) or word
        return structs.replace(row, local=local, local_abs=largest, diagnosis=word)

    def numbers(self, name: str) -> Floats:
        """Return a column of numbers (NaN where unknown), one per row in order of arrival."""
        self._fill()
        if name in LENS:
            return self.effects.column(name, self.tensors)
        if name in self._numbers:
            return self._numbers[name].first(self.count)
        return self._whole[name].first(self.count).astype(np.float64)

    def labels(self, name: str) -> tuple[Ints, list[str]]:
        """Return a column of label codes and the label of each code."""
        self._fill()
        labels = self._labels[name]
        return labels.column.first(self.count), labels.kinds

    def modules(self) -> tuple[Ints, list[Path]]:
        """Return a column of codes of modules, -1 where none is known, and the path of each code."""
        self._fill()
        return self._modules.column.first(self.count), self._modules.kinds

    def module(self, place: int) -> Path | None:
        """Return the module of a row, None where it is unknown."""
        codes, paths = self.modules()
        return paths[int(codes[place])] if codes[place] >= 0 else None

    def verdicts(self) -> npt.NDArray[np.int8]:
        """Return FAILED, PASSED or UNKNOWN per row."""
        self._fill()
        return self._verdict.first(self.count)

    def found(self, kinds: Iterable[str] | None = None) -> npt.NDArray[np.bool_]:
        """Return which rows have a finding (of `kinds`, or any at all)."""
        codes, names = self.labels("finding")
        wanted = [name != "" if kinds is None else name in set(kinds) for name in names]
        return np.array(wanted, bool)[codes] if names else np.zeros(0, bool)

    def at_fault(self) -> npt.NDArray[np.bool_]:
        """Return which rows are wrong by themselves: suspects, and what fails with a diagnosis that says so."""
        codes, names = self.labels("diagnosis")
        faults = FAULTS[1:] if self.imprecise else FAULTS
        wanted = np.array([name in faults for name in names] or [False], bool)
        return np.asarray((self.numbers("suspect") == 1) | (wanted[codes] & (self.verdicts() == FAILED)))

    def in_graph_order(self) -> Ints:
        """Return the places sorted by iteration, pair and position in the graph."""
        keys = (self.numbers("i"), self.numbers("pair"), self.numbers("iteration"))
        return np.lexsort(keys).astype(np.int32)

    def first_bad(self) -> int:
        """Return the place of the failed row that comes first in the graph (earliest iteration), or -1."""
        order = self.in_graph_order()
        bad = order[self.verdicts()[order] == FAILED]
        return int(bad[0]) if len(bad) else -1


def _verdict(row: LayerRow) -> int:
    """Of a tensor without elements nothing is known."""
    return UNKNOWN if row.passed is None or (row.passed and not row.size) else PASSED if row.passed else FAILED
