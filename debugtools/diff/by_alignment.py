"""What two graphs write in different ways, aligned: by weights that agree, and by what is computed around them.

Nothing is run: of what nodes compute, structure decides. A map that a comparison saved knows the values too.
"""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.align.fingerprint import fingerprint
from layerwise._tool.debugtools.align.graph import AlignGraph, AlignNode
from layerwise._tool.debugtools.align.match import align
from layerwise._tool.debugtools.align.side_data import SideData
from layerwise._tool.debugtools.diff.graph_side import GraphSide
from layerwise._tool.debugtools.diff.matching import Matching

_SMALL = 1 << 20


def align_rest(matching: Matching) -> Alignment:
    """Align what is left of two graphs, given the pairs there are; the matching takes the pairs over."""
    a, b = matching.a, matching.b
    several = {name for name, times in Counter(matching.tensors.values()).items() if times > 1}
    several |= {name for name, times in Counter(matching.equal.values()).items() if times > 1}
    known = {x: y for x, y in matching.tensors.items() if x and y and y not in several and not _tells_nothing(b, y)}
    hand = [AlignedPair(x, y, "certain", ("hand",)) for x, y in known.items()]
    found = align(_data(a, {pair.tensor for pair in hand}), _data(b, {pair.other for pair in hand}), hand)
    pairs = [pair for pair in found.pairs if "hand" not in pair.reasons]
    matching.take((pair.tensor, pair.other) for pair in pairs)
    move_ends(matching)
    return Alignment(pairs, found.unpaired)


def move_ends(matching: Matching) -> None:
    """Where what reads a node's result reads another's on the other side, one that is free, that is its counterpart."""
    for i, j in list(matching.forth.items()):
        if matching.a.nodes[i].op == matching.b.nodes[j].op:
            continue
        there = {matching.maker_read(r, s, slot) for r, s, slot in matching.readings(i)}
        found = there.pop() if len(there) == 1 else None
        if found is not None and found not in matching.back:
            matching.move(i, found)


def _tells_nothing(side: GraphSide, name: str) -> bool:
    """Whether it is a weight of one value throughout: a name that was given twice leads to the wrong one."""
    record = side.weights.get(name)
    if record is None or math.prod(record.dims) > _SMALL:
        return False
    with suppress(LayerwiseError):
        values = side.view.array(record).reshape(-1)
        return bool(values.size < 2 or (values[1:] == values[:1]).all())
    return True


def graph_of(side: GraphSide) -> AlignGraph:
    """A graph as aligning sees it; what bodies read counts as inputs of their nodes."""
    nodes = tuple(
        AlignNode(node.op, (*node.inputs, *side.captures(i)), tuple(node.outputs), node.name)
        for i, node in ((i, side.nodes[i]) for i in side.order)
    )
    known = {*side.maker, *side.weights, *side.inputs}
    outer = dict.fromkeys(name for node in nodes for name in node.inputs if name and name not in known)
    return AlignGraph(nodes, (*side.inputs, *outer), tuple(side.outputs), frozenset(side.weights))


def _data(side: GraphSide, known: set[str]) -> SideData:
    """known: weights whose counterparts are known, which are not read."""
    prints = {name: fingerprint(array) for name, array in _values(side, known)}
    return SideData(graph_of(side), prints)


def _values(side: GraphSide, known: set[str]) -> Iterator[tuple[str, Array]]:
    """Weights and constants, one at a time; what cannot be read is left out."""
    for name, tensor in side.parameters.items():
        with suppress(LayerwiseError):
            if name not in known:
                yield name, side.view.array(tensor)
