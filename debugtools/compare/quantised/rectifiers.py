"""Relu and Clip behind tensors in few bits: quantisers leave them out, or give what they read the range that they make.

What the codes cannot hold then is what the rectifier takes away, so it is nobody's error.
"""

import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import onnx
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.quantised.constants import Constants
from layerwise._tool.debugtools.compare.quantised.grid import Grid, reach
from layerwise._tool.debugtools.compare.quantised.operators import DEQUANTIZE
from layerwise._tool.debugtools.compare.quantised.sites import Site, Sites
from layerwise._tool.debugtools.compare.quantised.weights import Weights
from layerwise._tool.debugtools.compare.sides.side import ModelSide

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_RECTIFIERS = ("Relu", "Clip")


class Rectified(Struct, frozen=True):
    """A tensor that nothing but one rectifier reads; called, it gives it as that sees it, from `low` to `high`."""

    typed: ClassVar[bool] = False
    low: float
    high: float

    def __call__(self, array: Array) -> Array:
        low, high = array.dtype.type(self.low), array.dtype.type(self.high)
        return np.asarray(np.minimum(np.maximum(array, low), high))

    def back(self, array: Array) -> Array:
        """The tensor itself: the rectifier makes the same of it."""
        return array


def read_rectified(
    quantised: ModelSide, other: ModelSide, sites: Sites, *, base: bool
) -> tuple[dict[str, Rectified], dict[str, Rectified]]:
    """The quantised tensors (codes, their values, what was quantised) that nothing but a rectifier reads, and their
    counterparts where the same rectifier alone reads these. base: the quantised side's names are the comparison's.
    """
    mine, theirs = quantised.model.cut, other.model.cut
    known = Constants(theirs, Weights(theirs, other.model.file.folder))
    counts = Counter(name for reads in theirs.reads for name in {*reads})  # bodies read too
    here: dict[str, Rectified] = {}
    there: dict[str, Rectified] = {}
    for site in sites.all:
        seen = rectifier_of(mine, sites, site) if site.role == "activation" else None
        if seen is None:
            continue
        for name in _names(mine, sites, site):
            own = other.own(name if base else quantised.common(name))
            readers = known.readers[own] if counts[own] == 1 and own not in theirs.outputs else []
            if len(readers) == 1 and _taken(theirs.nodes[readers[0][0]], known.const) == seen:
                here[name] = there[own] = seen
    return here, there


def rectifier_of(cut: "GraphCut", sites: Sites, site: Site) -> Rectified | None:
    """What alone reads an activation's codes, their values and, but for quantising, the tensor; None if more does."""
    names = _names(cut, sites, site)
    readers = {i for name in names for i, _ in sites.readers[name]} - {site.i}
    nodes = [node for node in map(cut.nodes.__getitem__, readers) if node.op_type not in DEQUANTIZE]
    taken = [_taken(node, sites.const) for node in nodes]
    return taken[0] if taken and taken.count(taken[0]) == len(taken) and not {*names} & {*cut.outputs} else None


def _names(cut: "GraphCut", sites: Sites, site: Site) -> list[str]:
    before = [site.value] if site.value in cut.maker else []
    return [*before, site.tensor, *sites.dequantised(site)]


def _taken(node: onnx.NodeProto, const: Callable[[str], Array | None]) -> Rectified | None:
    """What a rectifier takes of a tensor; None of other nodes and of limits that are not known."""
    if node.op_type == "Relu":
        return Rectified(0.0, math.inf)
    if node.op_type != "Clip":
        return None
    named = {a.name: a.f for a in node.attribute}
    ends = [named.get("min", -math.inf), named.get("max", math.inf)]
    for place, name in enumerate(node.input[1:3]):
        known = const(name) if name else None
        if name and (known is None or known.size != 1):
            return None
        ends[place] = ends[place] if known is None else float(known.reshape(-1)[0])
    return Rectified(*ends)


def rectified(grid: Grid) -> bool:
    """Whether codes reach no value below 0, as those behind an activation that quantisers leave out for that."""
    low, high = reach(grid)
    return low > -0.01 * high


def leaves_rectifier_out(cut: "GraphCut", sites: Sites, site: Site) -> bool:
    """Whether no Relu or Clip reads a quantised tensor, so that the codes stand for one that reads its original."""
    names = (site.tensor, *sites.dequantised(site))
    return not any(cut.nodes[i].op_type in _RECTIFIERS for name in names for i, _ in sites.readers[name])


def behind_rectifier(cut: "GraphCut", name: str) -> str:
    """The tensor behind the Relu or Clip that alone reads a tensor; else the tensor itself."""
    readers = [node for node, reads in zip(cut.nodes, cut.reads, strict=True) if name in reads]
    if len(readers) == 1 and readers[0].op_type in _RECTIFIERS and name not in cut.outputs:
        return str(readers[0].output[0])
    return name


def before_rectifier(mine: "GraphCut", theirs: "GraphCut", value: str, own: str) -> str:
    """What a Relu or Clip takes whose output's name a quantiser gave to the tensor before it, leaving it out; or ""."""
    nodes = [cut.nodes[cut.maker[name]] if name in cut.maker else None for cut, name in ((mine, value), (theirs, own))]
    here, there = nodes
    if here is None or there is None or there.op_type not in _RECTIFIERS or here.op_type == there.op_type:
        return ""
    before = str(there.input[0])
    return before if before in theirs.maker else ""
