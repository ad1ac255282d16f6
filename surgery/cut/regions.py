"""Regions: the nodes between tensors that another graph also has.

The common tensors of both graphs cut this one. The region of such a tensor is what computes it from other such
tensors: one node if all its inputs are cut, more if this graph has nodes that the other lacks (casts to FP16 and back,
the parts of a fused node). Sequences, optionals and maps cannot be fed, so they never cut.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from layerwise._tool.surgery.cut.segments import GraphCut


@dataclass(frozen=True, slots=True)
class Region:
    """What computes one tensor. nodes: positions, in order. feeds: inputs from outside, without weights."""

    nodes: tuple[int, ...]
    feeds: tuple[str, ...]


class Regions:
    """The regions of a graph cut at the tensors `cuts`."""

    def __init__(self, cut: GraphCut, cuts: Collection[str]) -> None:
        self._cut = cut
        self.cuts = frozenset(name for name in cuts if name in cut.maker)
        self._known: dict[int, Region] = {}

    def of(self, name: str) -> Region:
        """Return the region of a tensor that a node makes."""
        i = self._cut.maker[name]
        if i not in self._known:
            self._known[i] = self._find(i)
        return self._known[i]

    def joint(self, names: Sequence[str]) -> Region:
        """Return the nodes that make all of `names`, each once, and their inputs from outside."""
        regions = [self.of(name) for name in names]
        nodes = sorted({i for region in regions for i in region.nodes})
        return Region(tuple(nodes), tuple(dict.fromkeys(name for region in regions for name in region.feeds)))

    def _find(self, last: int) -> Region:
        cut = self._cut
        nodes, waiting, feeds = {last}, [last], dict[str, None]()
        while waiting:
            for name in cut.reads[waiting.pop()]:
                maker = cut.maker.get(name)
                if maker is None or name in self.cuts:
                    if name not in cut.initializers and name not in cut.sparse:
                        feeds[name] = None
                elif maker not in nodes:
                    nodes.add(maker)
                    waiting.append(maker)
        return Region(tuple(sorted(nodes)), tuple(feeds))
