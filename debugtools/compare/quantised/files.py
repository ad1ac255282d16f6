"""A quantised model as a file: what it holds in few bits, against a float model's weights and saved tensors.

And a TensorRT calibration cache: a text file with a scale (hex of FP32, big-endian) for each tensor.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.quantised.grid import Grid
from layerwise._tool.debugtools.compare.quantised.originals import Originals, shorter_names
from layerwise._tool.debugtools.compare.quantised.reader import SiteReader, worst_first
from layerwise._tool.debugtools.compare.quantised.sites import BROKEN, Site, Sites
from layerwise._tool.debugtools.compare.quantised.told import told
from layerwise._tool.debugtools.compare.quantised.weights import Weights
from layerwise._tool.debugtools.compare.quantised_row import QuantisedResult, QuantisedRow
from layerwise._tool.surgery.model.structure import node_label

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

Tensors = Mapping[str, Array]
_MOST = 1 << 26  # bytes of a cache


class Review(Struct, frozen=True):
    """rows: of a model, the wrong and the lossy first; cache: of a calibration cache, alike; unread: sentences."""

    rows: list[QuantisedRow]
    cache: list[QuantisedRow]
    unread: list[str]

    @property
    def result(self) -> QuantisedResult:
        """What both come to."""
        rows = self.ranked
        return QuantisedResult(len(rows), sum(bool(row.word) for row in rows), told(rows))

    @property
    def ranked(self) -> list[QuantisedRow]:
        """All rows, the wrong and the lossy first."""
        return worst_first([*self.rows, *self.cache])


class FileReview:
    """model: the quantised one. reference: its float original, None without. BadFile for what cannot be read."""

    def __init__(self, model: ModelFile, reference: ModelFile | None) -> None:
        self._cut, weight = _opened(model)
        self._sites = Sites(self._cut, weight)
        self._theirs = self._cut if reference is None else _opened(reference)[0]
        originals = None if reference is None else Originals(*_opened(reference))
        self._reader = SiteReader(self._cut, originals)

    def review(self, tensors: Iterable[Tensors], cache: Path | None) -> Review:
        """tensors: of the float model, by its names, a mapping for each run. cache: a calibration cache."""
        scales = {} if cache is None else read_cache(cache)
        found: dict[int, QuantisedRow] = {}
        held: dict[str, QuantisedRow] = {}
        for run in tensors:
            for number, site in enumerate(self._sites.all):
                if site.role == "activation" and (name := _seen(site, run)):
                    row = self._activation(site, name, run[name])
                    found[number] = max(found.get(number, row), row, key=_badness)
            for name, scale in scales.items():
                if name in run and is_floating(dtype_name(run[name])):
                    row = self._cached(name, scale, run[name])
                    held[name] = max(held.get(name, row), row, key=_badness)
        for number, site in enumerate(self._sites.all):
            if site.role != "activation":
                found[number] = self._weight(site)
            elif number not in found:
                found[number] = self._reader.plain(site)
        cached = [held.get(name) or self._cached(name, scale, None) for name, scale in scales.items()]
        return Review(worst_first(list(found.values())), worst_first(cached), self._sites.unread)

    def _weight(self, site: Site) -> QuantisedRow:
        try:
            return self._reader.weight(site)[0]
        except BROKEN as error:
            return replace(self._reader.plain(site), text=f"it cannot be read: {error}")

    def _activation(self, site: Site, name: str, values: Array) -> QuantisedRow:
        try:
            return self._reader.activation(site, name, values)[0]
        except BROKEN as error:
            return replace(self._reader.plain(site), text=f"it cannot be held against the original: {error}")

    def _cached(self, name: str, scale: float, values: Array | None) -> QuantisedRow:
        """The row of a tensor in a cache: TensorRT quantises it to 8 bits, symmetric."""
        grid = Grid("int8", np.asarray([scale], np.float32))
        i = self._theirs.maker.get(name, -1)
        node = self._theirs.nodes[i] if i >= 0 else None
        row = QuantisedRow(
            i=i, node="" if node is None else node_label(node), op="" if node is None else node.op_type, tensor=name,
            role="activation", form="cache", format=grid.text(), scale=(scale, scale),
        )  # fmt: skip
        if node is None and name not in self._theirs.inputs:
            return replace(row, text="the model has no such tensor")
        if not np.isfinite(scale) or scale <= 0:
            return replace(row, word="scale", text=f"a scale of {scale:g} holds nothing", excess=1.0)
        if values is None:
            return row
        site = Site(max(i, 0), name, "activation", "cache", grid)
        made = self._reader.activation(site, name, values)[0]
        return replace(made, i=row.i, node=row.node, op=row.op)


def _opened(file: ModelFile) -> "tuple[GraphCut, Weights]":
    from layerwise._tool.surgery.cut.segments import GraphCut

    cut = GraphCut(file.structure())
    return cut, Weights(cut, file.folder)


def _seen(site: Site, run: Tensors) -> str:
    """The name by which saved tensors hold what a site quantises."""
    names: Iterator[str] = (name for each in (site.value, site.tensor) for name in shorter_names(each))
    return next((name for name in names if name in run and is_floating(dtype_name(run[name]))), "")


def _badness(row: QuantisedRow) -> tuple[bool, float]:
    return bool(row.word), row.loss or 0.0


def read_cache(path: Path) -> dict[str, float]:
    """The scales of a TensorRT calibration cache by tensor. BadFile if it is none."""
    try:
        if path.stat().st_size > _MOST:
            raise BadFile(path, "it is too large for a calibration cache")
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise BadFile(path, f"it cannot be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise BadFile(path, "it is no TensorRT calibration cache: it is no text") from None
    if not lines or not lines[0].startswith("TRT-"):
        raise BadFile(path, "it is no TensorRT calibration cache: the first line does not begin with TRT-")
    found = {}
    for number, line in enumerate(lines[1:], 2):
        name, colon, text = line.rpartition(":")
        if not line.strip():
            continue
        try:
            found[name.strip()] = float(struct.unpack(">f", bytes.fromhex(text.strip().zfill(8)))[0])
        except (ValueError, struct.error):
            raise BadFile(path, f"line {number} is not `tensor: scale in hex`: {shown(line, 80)!r}") from None
        if not colon:
            raise BadFile(path, f"line {number} is not `tensor: scale in hex`: {shown(line, 80)!r}")
    return found
