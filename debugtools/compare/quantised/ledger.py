"""What one side of a comparison holds in few bits, held against the float other side as its tensors are seen."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.quantised.grid import reach
from layerwise._tool.debugtools.compare.quantised.operators import DEQUANTIZE, SAME, holds_codes
from layerwise._tool.debugtools.compare.quantised.originals import Originals
from layerwise._tool.debugtools.compare.quantised.own_values import are_taken_up, cleared, holds, lost_elsewhere
from layerwise._tool.debugtools.compare.quantised.reader import SiteReader, worst_first
from layerwise._tool.debugtools.compare.quantised.rectifiers import (
    Rectified,
    behind_rectifier,
    leaves_rectifier_out,
    read_rectified,
    rectified,
)
from layerwise._tool.debugtools.compare.quantised.region_formats import RegionFormats
from layerwise._tool.debugtools.compare.quantised.sites import BROKEN, Site, Sites
from layerwise._tool.debugtools.compare.quantised.stages import pair_stages, see_executed_values, see_values
from layerwise._tool.debugtools.compare.quantised.standing_out import standing_out
from layerwise._tool.debugtools.compare.quantised.told import told
from layerwise._tool.debugtools.compare.quantised.weights import Weights
from layerwise._tool.debugtools.compare.quantised_row import QuantisedResult, QuantisedRow
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_WORST = 5


def sites_of(side: Side) -> Sites | None:
    """What a side holds in few bits, None if that is nothing."""
    if not holds_codes(side):
        return None
    sites = Sites(side.model.cut, weights_of(side))
    return sites if sites.all or sites.unread else None


def weights_of(side: ModelSide) -> Weights:
    """The values of a side's weights."""
    return Weights(side.model.cut, side.model.file.folder)


def ledger_of(first: Side, second: Side, model: Model | None) -> "Ledger | None":
    """The ledger of the side that holds tensors in few bits, if it is one of the two; model: the comparison's."""
    sites = sites_of(first), sites_of(second)
    counts = [0 if found is None else len(found.all) + len(found.unread) for found in sites]
    if counts[0] == counts[1]:
        return None
    which = int(counts[1] > counts[0])
    side, other, found = (first, second)[which], (second, first)[which], sites[which]
    assert isinstance(side, ModelSide)
    assert found is not None
    return Ledger(side, other, found, sites[1 - which], base=side.model is model)


class Ledger:
    """quantised: the side that holds tensors in few bits; other: its float original. base: of which the comparison's
    names are. theirs: what the other side holds in few bits too, though less. Pairs the stages of quantised tensors.
    """

    def __init__(self, quantised: ModelSide, other: Side, sites: Sites, theirs: Sites | None, *, base: bool) -> None:
        self.side, self.other, self.sites, self._theirs, self._base = quantised, other, sites, theirs, base
        self._cut: GraphCut = quantised.model.cut
        originals = self.originals = None
        if isinstance(other, ModelSide) and other.model.has_graph and other.spec.kind != "torch":
            originals = self.originals = Originals(other.model.cut, weights_of(other), self._read_there)
        self._reader = SiteReader(self._cut, originals)
        self._seen: dict[str, Rectified] = {}
        self._seen_here: dict[str, Rectified] = {}
        self._rows: dict[int, QuantisedRow] = {}
        self._noise: dict[int, float] = {}
        self.regions = RegionFormats(self._cut, sites, self._lost)
        self._waiting: dict[str, list[int]] = defaultdict(list)
        for number, site in enumerate(sites.all):
            if site.role == "activation":
                for name in {site.value, site.tensor, *sites.dequantised(site)} - {""}:
                    self._waiting[name].append(number)
        self._views = self._await_views()

    def _await_views(self) -> frozenset[str]:
        """Views of codes, and what these become, tell of an activation too that has no counterpart itself."""
        found = set()
        for name in self.sites.grids:
            source = self.sites.source(name, self._roots, SAME)
            number = None if name in self._roots else self.regions.activations.get(source)
            if number is not None:
                made = [self._cut.nodes[i] for i, slot in self.sites.readers[name] if slot == 0]
                for each in (name, *(node.output[0] for node in made if node.op_type in DEQUANTIZE)):
                    self._waiting[each].append(number)
                    found.add(each)
        return frozenset(found)

    @cached_property
    def _roots(self) -> frozenset[str]:
        return frozenset(site.tensor for site in self.sites.all if site.role == "activation")

    def _read_there(self, site: Site) -> Iterator[str]:
        """What the float side's nodes read that make what a weight's readers make, by its names."""
        assert isinstance(self.other, ModelSide)
        cut = self.other.model.cut
        for name in (name for i in site.readers for name in self._cut.nodes[i].output if name):
            maker = cut.maker.get(self.other.own(self.side.common(name)))
            yield from () if maker is None else cut.nodes[maker].input

    def pair(self) -> None:
        """Have both sides know the stages of quantised tensors. To be called when the sides are aligned."""
        other = self.other
        if isinstance(other, ModelSide) and self.originals is not None:
            pair_stages(self.side, other, self.sites, self.originals, base=self._base)
            if self._theirs is None:
                self._seen_here, self._seen = read_rectified(self.side, other, self.sites, base=self._base)
        see_values(self.side, self.sites, self._seen_here)
        if isinstance(other, ModelSide):
            see_values(other, self._theirs, self._seen)

    def see_executed(self) -> None:
        """Have codes of the graph that the quantised side really runs seen as the values that they stand for."""
        see_executed_values(self.side, self.sites, self._seen_here)

    def fed(self, feed: Mapping[str, Array]) -> None:
        """Take in the inputs, by the quantised side's names."""
        for name, array in feed.items():
            self.saw(name, array, name)

    def saw(self, own: str, values: Array, other: str, mine: Array | None = None) -> None:
        """Take in the float side's values of a tensor. own, other: its names on both sides; mine: the quantised side's
        values, where these are to be asked. Of several feeds the one counts that loses most.
        """
        if own not in self._waiting or not is_floating(dtype_name(values)) or not values.size:
            return
        for number in self._waiting[own]:
            site = self.sites.all[number]
            if own in self._views and number in self._rows:
                continue
            try:
                row, found = self._reader.activation(site, other, self._rectified(site, other, values))
            except BROKEN as error:
                row = replace(self._reader.plain(site), text=f"it cannot be held against the original: {error}")
                self._rows.setdefault(number, row)
                continue
            known = self._rows.get(number)
            row = cleared(row, known, partial(self._fits, site, own, other, mine))
            if known is None or (bool(row.word), row.loss or 0) > (bool(known.word), known.loss or 0):
                self._rows[number] = row
            lost = (row.error or 0.0) if row.masked else 0.0
            self._noise[number] = max(self._noise.get(number, 0.0), found.noise, lost)

    def _fits(self, site: Site, own: str, other: str, mine: Array | None) -> bool:
        """Whether a tensor's codes fit the quantised side's own values, before they are quantised or after."""
        if mine is None or site.grid is None or not is_floating(dtype_name(mine)) or not np.isfinite(mine).all():
            return False
        if own == site.value:
            return holds(self._reader.activation(site, other, self._rectified(site, other, mine))[0])
        return not site.grid.many and mine.size > 1 and are_taken_up(site.grid, mine)

    def _rectified(self, site: Site, other: str, values: Array) -> Array:
        """The values as their only reader sees them; behind a Relu that was left out since the codes reach or hold no
        value below 0."""
        side, grid = self.other, site.grid
        if grid is None or not isinstance(side, ModelSide) or not side.model.has_graph:
            return values
        if other in self._seen:
            return self._seen[other](values)
        if behind_rectifier(side.model.cut, other) == other:
            return values
        if rectified(grid):
            _, high = reach(grid)
            return np.clip(values, 0, high if self._clips(other) else None)
        above = np.maximum(values, 0)
        held = leaves_rectifier_out(self._cut, self.sites, site) and np.array_equal(
            grid.codes(values), grid.codes(above)
        )
        return above if held else values

    def _clips(self, other: str) -> bool:
        """Whether the original goes to a Clip alone, whose upper end the codes have."""
        assert isinstance(self.other, ModelSide)
        return any(node.op_type == "Clip" and other in node.input for node in self.other.model.cut.nodes)

    @cached_property
    def _weights(self) -> dict[int, tuple[QuantisedRow, float]]:
        found = {}
        for number, site in enumerate(self.sites.all):
            if site.role != "activation":
                try:
                    row, known = self._reader.weight(site)
                    noise = self._reader.steps(site) if known is None and not row.word else 0.0
                except BROKEN as error:
                    row, known = replace(self._reader.plain(site), text=f"it cannot be read: {error}"), None
                    noise = 0.0
                found[number] = row, noise if known is None else known.noise
        return found

    def weights(self) -> list[tuple[Site, QuantisedRow]]:
        """What is no activation, each with its row."""
        return [(self.sites.all[number], row) for number, (row, _) in self._weights.items()]

    def rows(self) -> list[QuantisedRow]:
        """A row for each tensor in few bits: what is wrong first, then what loses most."""
        found = {number: row for number, (row, _) in self._weights.items()} | standing_out(self._rows)
        for number, site in enumerate(self.sites.all):
            found.setdefault(number, self._reader.plain(site))
        return worst_first(list(found.values()))

    def of(self, own: str) -> QuantisedRow | None:
        """The row of a tensor of the quantised side that holds codes, or what they become, as far as is known."""
        number = self._stage.get(own)
        if number is None:
            return None
        return self._rows.get(number) or self._weights.get(number, (None, 0.0))[0]

    @cached_property
    def _stage(self) -> dict[str, int]:
        found = {}
        for number, site in enumerate(self.sites.all):
            made = self.sites.dequantised(site) if site.role == "activation" else [site.value]
            found.update(dict.fromkeys(filter(None, (site.tensor, *made)), number))
        return found

    def result(self) -> QuantisedResult:
        """What all rows come to."""
        rows = self.rows()
        wrong = [row for row in rows if row.word]
        text = told(rows, self.sites.unread)
        return QuantisedResult(len(rows), len(wrong), text, rows[:_WORST])

    @property
    def explains(self) -> bool:
        """Whether everything in few bits has an original, and is what its format makes of that."""
        rows = [row for row in self.rows() if row.role != "bias"]
        wrong = any(row.word or (row.elsewhere and row.text) for row in rows)
        return bool(rows) and not self.sites.unread and not wrong and all(row.other for row in rows)

    def accused(self) -> list[QuantisedRow]:
        """The rows of what the formats do not explain, the worst first."""
        return [row for row in self.rows() if row.word]

    def _lost(self, number: int, read: bool) -> float:
        """What `RegionFormats` asks for: what is read may hold other values than its codes were made for."""
        lost = lost_elsewhere(self._rows.get(number)) if read else 0.0
        return lost or self._noise.get(number) or self._weights.get(number, (None, 0.0))[1]

    def reads_accused(self, region: Sequence[int]) -> bool:
        """Whether a region of nodes holds or reads what is wrong, or lost beside a mask."""
        rows = [row for row in self.rows() if row.word or row.masked]
        wrong, nodes = {row.tensor for row in rows}, {row.i for row in rows}
        return not nodes.isdisjoint(region) or any(name in wrong for i in region for name in self._cut.reads[i])
