"""What the formats of one side explain of the regions of nodes that make, hold or read its codes."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.arithmetic.tolerance import rounds_like, unit_roundoff
from layerwise._tool.debugtools.compare.quantised.grid import Grid, reach
from layerwise._tool.debugtools.compare.quantised.operators import DEQUANTIZE, QUANTIZE, VIEWS
from layerwise._tool.debugtools.compare.quantised.sites import Sites

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_CODES_ALONE = QUANTIZE | DEQUANTIZE | VIEWS


class RegionFormats:
    """lost: relative L2 error that the format of a site explains, by its number among all sites; 0 where that is not
    known. It is also asked whether the site is one that is read, but neither made nor held there.
    """

    def __init__(self, cut: "GraphCut", sites: Sites, lost: Callable[[int, bool], float]) -> None:
        self._cut, self._sites, self._lost = cut, sites, lost

    def noise(self, region: Collection[int]) -> float:
        """Relative L2 error that the formats of what a region of nodes quantises or holds explain, before anything
        carries it on; 0 if that is nothing.
        """
        here = self._made_or_held(region)
        return math.hypot(
            *(self._lost(number, number not in here) or self._usual(number) for number in self._in(region))
        )

    def rounds_alone(self, region: Collection[int]) -> Grid | None:
        """The grid of the codes that a region makes, hands on or reads, if it does no more; None if it does."""
        if not all(self._cut.nodes[i].op_type in _CODES_ALONE for i in region):
            return None
        grids = [self._sites.all[number].grid for number in self._in(region)]
        return grids[0] if len(grids) == 1 and grids[0] is not None and not grids[0].many else None

    def makes_codes(self, region: Collection[int]) -> bool:
        """Whether a region makes or reads codes of an activation."""
        return any(self._sites.all[number].role == "activation" for number in self._in(region))

    def beyond(self, region: Collection[int], values: Array) -> float:
        """Relative L2 size of what the codes of the one activation that a region quantises leave out of values at their
        ends; 0 where it quantises none or more."""
        sites = [self._sites.all[number] for i in region for number in self._places.get(i, ())]
        grids = [site.grid for site in sites if site.role == "activation" and site.grid is not None]
        if len(grids) != 1 or not is_floating(dtype_name(values)):
            return 0.0
        wide = values.astype(np.float64)
        size = float(np.linalg.norm(wide))
        return float(np.linalg.norm(wide - np.clip(wide, *reach(grids[0])))) / size if size else 0.0

    def _usual(self, number: int) -> float:
        """What the format of an activation explains whose float original is not known, or lies on the grid by chance:
        a single number, which the grid was made for."""
        site = self._sites.all[number]
        if site.role != "activation":
            return 0.0
        return unit_roundoff([rounds_like("uint8" if site.grid is None else site.grid.kind)])

    def _in(self, region: Collection[int]) -> set[int]:
        """What is quantised, held or read in a region: what is fed to it as codes was rounded too."""
        read = (self.activations.get(name) for i in region for name in self._cut.reads[i])
        return self._made_or_held(region) | {number for number in read if number is not None}

    def _made_or_held(self, region: Collection[int]) -> set[int]:
        return {number for i in region for number in self._places.get(i, ())}

    @cached_property
    def _places(self) -> dict[int, list[int]]:
        found = defaultdict(list)
        for number, site in enumerate(self._sites.all):
            found[site.i].append(number)
        return found

    @cached_property
    def activations(self) -> dict[str, int]:
        """The activation whose codes a tensor holds, views of them among these."""
        found = {site.tensor: number for number, site in enumerate(self._sites.all) if site.role == "activation"}
        for name in self._sites.grids:
            if name not in found:
                found[name] = found[self._sites.source(name, found)]
        return found
