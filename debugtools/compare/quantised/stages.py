"""Codes and what they become belong to the tensor that was quantised: X, Q(X) and DQ(X), W and DQ(W).

Codes are looked at as the values that they stand for. So every stage has its float counterpart, and a part of the graph
between two of them holds one cause of error each.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import dtype_name, dtype_row
from layerwise._tool.debugtools.compare.quantised.grid import Grid
from layerwise._tool.debugtools.compare.quantised.operators import DYNAMIC
from layerwise._tool.debugtools.compare.quantised.originals import Originals, shorter_names
from layerwise._tool.debugtools.compare.quantised.rectifiers import (
    Rectified,
    before_rectifier,
    behind_rectifier,
    leaves_rectifier_out,
    rectified,
)
from layerwise._tool.debugtools.compare.quantised.sites import Sites
from layerwise._tool.debugtools.compare.sides.side import ModelSide, ObservedGraph
from layerwise._tool.debugtools.compare.sides.stream import Held
from layerwise._tool.surgery.types.node_types import tensor_types

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut


_Counterpart = tuple[str, str]  # the other side's name, and a stage in whose layout it is


class Dequantised(Struct, frozen=True, eq=False):
    """Codes of one grid; called, it gives their values in FP32. seen: by what alone reads
    them."""

    typed: ClassVar[bool] = True
    grid: Grid
    seen: Rectified | None = None

    def __call__(self, array: Array) -> Array:
        values = np.asarray(self.grid.values(array))
        return values if self.seen is None else self.seen(values)

    def back(self, array: Array) -> Array:
        """The nearest codes of values, in their type."""
        return self.grid.codes(array).astype(dtype_row(self.grid.kind).numpy)


def see_values(side: ModelSide, sites: Sites | None, seen: Mapping[str, Rectified]) -> None:
    """Have codes observed as the values that they stand for, where these are not floating tensors themselves. seen:
    tensors of which only that counts which their reader takes.
    """
    cut = side.model.cut
    grids = {name: grid for name, grid in (sites.grids if sites else {}).items() if name not in cut.outputs}
    if not (grids or seen) or side.observed.executed:
        return
    held: dict[str, Held] = {**seen, **{name: Dequantised(grid, seen.get(name)) for name, grid in grids.items()}}
    side.observe(ObservedGraph(cut, side.model.file.folder, names={n: (n, held.get(n)) for n in cut.maker}))


def see_executed_values(side: ModelSide, sites: Sites, seen: Mapping[str, Rectified]) -> None:
    """The same of the graph that a session really runs. Codes that it holds in another type than the model, or in one
    that is not known, stand for nothing and are not observed.
    """
    graph = side.observed
    assert graph.names is not None
    try:
        types = tensor_types(graph.cut.model)
    except LayerwiseError:
        types = {}
    names: dict[str, tuple[str, Held | None]] = {}
    for name, (own, held) in graph.names.items():
        grid = sites.grids.get(own)
        if grid is None or own in side.model.cut.outputs:
            names[name] = own, held or seen.get(own)
        elif held is None and name in types and dtype_name(types[name]) == grid.kind:
            names[name] = own, Dequantised(grid, seen.get(own))
    side.observe(replace(graph, names=names))


def pair_stages(quantised: ModelSide, other: ModelSide, sites: Sites, originals: Originals, *, base: bool) -> None:
    """Have the other side know what the stages of its tensors are called on the quantised side. base: the quantised
    side's names are the comparison's.
    """
    found = dict(_stages(quantised, other, sites, base))
    if base:
        _part_products(quantised, other, sites)
        found |= dict(_weights(quantised, other, sites, originals))
    for stage, (own, like) in found.items():
        if base:
            if not other.naming.back(own):  # it keeps the name that it has
                other.naming.add(own, own)
            other.naming.add_like(stage, own, like)
        else:
            quantised.naming.add_like(other.common(own), stage, "")


def _part_products(quantised: ModelSide, other: ModelSide, sites: Sites) -> None:
    """Scales that are made while running are nobody's counterpart, nor a product before its bias where the original
    adds the bias itself.
    """
    cut = quantised.model.cut
    scales: set[str] = set()
    for node in cut.nodes:
        if node.op_type == DYNAMIC:
            scales.update(node.output[1:])
        elif node.op_type in ("Mul", "Reshape", "Cast", "Unsqueeze") and all(
            name in scales or sites.const(name) is not None for name in node.input
        ):
            scales.update(node.output)
    for name in scales:
        if other.own(name) in other.model.cut.maker:
            other.naming.add(name, f"{name} (no counterpart)")
    for node in cut.nodes:
        if node.op_type != "Add" or len(node.input) != 2:
            continue
        own = other.own(node.output[0])
        for name, bias in (tuple(node.input), tuple(node.input)[::-1]):
            if own in other.model.cut.maker and other.own(name) == own and sites.const(sites.source(bias)) is not None:
                other.naming.add(name, f"{name} (no counterpart)")


def _weights(
    quantised: ModelSide, other: ModelSide, sites: Sites, originals: Originals
) -> Iterator[tuple[str, _Counterpart]]:
    """What weights become, each with its original where that is a weight of the same layout."""
    theirs = other.model.cut
    for site in sites.all:
        if site.role == "activation" or site.grid is None or site.codes is None or not site.value:
            continue
        if site.value not in quantised.model.cut.maker or quantised.common(site.value) != site.value:
            continue
        name = originals.name_of(site)
        if name is not None and name in theirs.initializers and not other.has(other.own(site.value)):
            yield site.value, (name, "")


def _stages(quantised: ModelSide, other: ModelSide, sites: Sites, base: bool) -> Iterator[tuple[str, _Counterpart]]:
    mine, theirs = quantised.model.cut, other.model.cut

    def counterpart(name: str) -> str:
        own = other.own(name) if base else other.own(quantised.common(name))
        return own if own in theirs.maker else ""

    for site in sites.all:
        if site.role != "activation" or site.grid is None:
            continue
        stages = [site.tensor, *sites.dequantised(site)]
        known = [stage for stage in [site.value, *stages] if stage and counterpart(stage)]
        own = counterpart(known[0]) if known else _by_name(site.tensor, theirs, other, base)
        left_out = own and (rectified(site.grid) or leaves_rectifier_out(mine, sites, site))
        plain, own = own, behind_rectifier(theirs, own) if left_out else own
        named = base and own and known[:1] == [site.value]
        before = before_rectifier(mine, theirs, site.value, own) if named else ""
        if before:
            yield site.value, (before, known[0])
        if own:
            # on the float side's own comparison a tensor has one counterpart: the first that there is
            wanted = stages if base else stages[:1] if not known else []
            for stage in wanted:
                taken = counterpart(stage)
                if not taken or (taken == plain != own) or (before and taken != own):
                    yield stage, (own, known[0] if known else "")
    seen = {site.tensor for site in sites.all}
    for name in sites.grids if base else ():
        own = "" if name in seen or counterpart(name) else _by_name(name, theirs, other, base)
        if own:
            yield name, (own, "")


def _by_name(tensor: str, theirs: "GraphCut", other: ModelSide, base: bool) -> str:
    for name in shorter_names(tensor):
        taken = base and other.naming.aligned and other.common(name) != name
        if name in theirs.maker and not taken:
            return name
    return ""
