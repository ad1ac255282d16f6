"""Whether the values of what nodes compute tell by themselves which tensors belong together."""

from collections import defaultdict

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.align.distance import FINE, distance, distances, tolerance
from layerwise._tool.debugtools.align.fingerprint import Fingerprint
from layerwise._tool.debugtools.align.operators import quantises
from layerwise._tool.debugtools.align.side_data import SideData


def told_by_values(first: SideData, second: SideData) -> bool:
    """Whether the outputs of two graphs agree, and each float that nodes of one of them make has one of the same values
    in the same flat order on the other: then weights tell nothing more. Never of tensors in few bits.
    """
    sides = first, second
    if any(quantises(node.op) for side in sides for node in side.graph.nodes) or not _agree(first, second):
        return False
    made = [_floats(side) for side in sides]
    known = (each for rows in made for prints in rows.values() for each in prints)
    if any(tolerance(each, each, quantised=False) > FINE for each in known):
        return False
    alone = [sum(len(rows) for size, rows in made[i].items() if size not in made[1 - i]) for i in (0, 1)]
    for size in made[0].keys() & made[1].keys():
        near = distances(made[0][size], made[1][size])[0] <= FINE
        for place, side in enumerate(_without(near)):
            alone[place] += side
    return not all(alone)


def _agree(first: SideData, second: SideData) -> bool:
    """Whether the outputs do, in their order."""
    if len(first.graph.outputs) != len(second.graph.outputs):
        return False
    for pair in zip(first.graph.outputs, second.graph.outputs, strict=True):
        one, other = first.prints.get(pair[0]), second.prints.get(pair[1])
        if one is None or other is None or distance(one, other).in_order > FINE:
            return False
    return True


def _floats(side: SideData) -> dict[int, list[Fingerprint]]:
    """What nodes make and tells something, by size."""
    found: dict[int, list[Fingerprint]] = defaultdict(list)
    for name in (name for node in side.graph.nodes if node.op != "Constant" for name in node.outputs):
        known = side.prints.get(name)
        if known is not None and known.kind == "float" and not known.constant:
            found[known.size].append(known)
    return found


def _without(near: Array) -> tuple[int, int]:
    """How many rows have no column that is near, and how many columns no row."""
    return int(np.count_nonzero(~near.any(1))), int(np.count_nonzero(~near.any(0)))
