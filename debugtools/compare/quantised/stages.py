"""Codes and what they become belong to the tensor that was quantised: X, Q(X) and DQ(X), W and DQ(W).

Codes are looked at as the values that they stand for. So every stage has its float counterpart, and a part of the graph
between two of them holds one cause of error each.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_row
from layerwise._tool.debugtools.compare.quantised.grid import Grid
from layerwise._tool.debugtools.compare.quantised.operators import DEQUANTIZE
from layerwise._tool.debugtools.compare.quantised.originals import shorter_names
from layerwise._tool.debugtools.compare.quantised.sites import Site, Sites
from layerwise._tool.debugtools.compare.sides.side import ModelSide, ObservedGraph

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut


class Dequantised(Struct, frozen=True, eq=False):
    """Codes of one grid; called, it gives their values in FP32."""

    typed: ClassVar[bool] = True
    grid: Grid

    def __call__(self, array: Array) -> Array:
        return np.asarray(self.grid.values(array))

    def back(self, array: Array) -> Array:
        """The nearest codes of values, in their type."""
        return self.grid.codes(array).astype(dtype_row(self.grid.kind).numpy)


def see_values(side: ModelSide, sites: Sites) -> None:
    """Have codes observed as the values that they stand for, where these are not floating tensors themselves."""
    cut = side.model.cut
    grids = {name: grid for name, grid in sites.grids.items() if name not in cut.outputs}
    if not grids or side.observed.executed:
        return
    names = {name: (name, Dequantised(grids[name]) if name in grids else None) for name in cut.maker}
    side.observe(ObservedGraph(cut, side.model.file.folder, names=names))


def pair_stages(quantised: ModelSide, other: ModelSide, sites: Sites, *, base: bool) -> dict[str, str]:
    """Have the other side know what the stages of its tensors are called on the quantised side; return them, by the
    names there. base: the quantised side's names are the comparison's.
    """
    found = dict(_stages(quantised, other, sites, base))
    for stage, own in found.items():
        if base:
            if not other.naming.back(own):  # it keeps the name that it has
                other.naming.add(own, own)
            other.naming.add(stage, own)
        else:
            quantised.naming.add(other.common(own), stage)
    return found


def _stages(quantised: ModelSide, other: ModelSide, sites: Sites, base: bool) -> Iterator[tuple[str, str]]:
    mine, theirs = quantised.model.cut, other.model.cut

    def counterpart(name: str) -> str:
        own = other.own(name) if base else other.own(quantised.common(name))
        return own if own in theirs.maker else ""

    for site in sites.all:
        if site.role != "activation" or site.grid is None:
            continue
        stages = [site.tensor, *dequantised(mine, sites, site)]
        known = [stage for stage in [site.value, *stages] if stage and counterpart(stage)]
        own = counterpart(known[0]) if known else _by_name(site.tensor, theirs, other, base)
        if own:
            # on the float side's own comparison a tensor has one counterpart: the first that there is
            wanted = stages if base else stages[:1] if not known else []
            yield from ((stage, own) for stage in wanted if not counterpart(stage))
    seen = {site.tensor for site in sites.all}
    for name in sites.grids if base else ():
        own = "" if name in seen or counterpart(name) else _by_name(name, theirs, other, base)
        if own:
            yield name, own


def _by_name(tensor: str, theirs: "GraphCut", other: ModelSide, base: bool) -> str:
    for name in shorter_names(tensor):
        taken = base and other.naming.aligned and other.common(name) != name
        if name in theirs.maker and not taken:
            return name
    return ""


def dequantised(cut: "GraphCut", sites: Sites, site: Site) -> list[str]:
    """The floating tensors that codes are made into, straight."""
    nodes = [cut.nodes[i] for i, slot in sites.readers[site.tensor] if slot == 0]
    return [node.output[0] for node in nodes if node.op_type in DEQUANTIZE and node.output]
