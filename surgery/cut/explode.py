"""The exploded graph: every region gets its inputs from graph inputs, so one run yields each region's own result.

Fed with the tensors of a reference, each output differs from the reference's by the error of its own region, its
*local* error, regardless of earlier errors. Inputs have the names of the tensors that they replace, so nodes and
bodies are copied unchanged; a tensor that is both cut and made here is output under a new name. Weights stay
external data in the model's own file.

Regions: the nodes between tensors that another graph also has.

The common tensors of both graphs cut this one. The region of such a tensor is what computes it from other such
tensors: one node if all its inputs are cut, more if this graph has nodes that the other lacks (casts to FP16 and back,
the parts of a fused node). Sequences, optionals and maps cannot be fed, so they never cut.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import onnx

from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.proto import all_names, fresh


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


@dataclass(frozen=True)
class Exploded:
    """An exploded part of a graph: a serialised ModelProto.

    feeds: the tensors it reads, under their own names. gives: output name -> tensor.
    """

    data: bytes
    feeds: tuple[str, ...]
    gives: Mapping[str, str]


class Exploder:
    """Explodes parts of one graph, cut at `cuts` (tensors that can be fed)."""

    def __init__(self, cut: GraphCut, cuts: Collection[str]) -> None:
        self.cut = cut
        self.regions = Regions(cut, cuts)

    def feeds(self, names: Sequence[str], own: Collection[str] = ()) -> tuple[str, ...]:
        """Return the tensors that the regions of `names` read; constants in `own` are not fed."""
        return tuple(name for name in self.regions.joint(names).feeds if name not in own)

    def build(self, names: Sequence[str], types: Mapping[str, int], own: Collection[str] = ()) -> Exploded:
        """Return the regions of `names` in one model.

        types: ONNX element types of the `feeds`. own: tensors made by Constant nodes that are included with their
        readers, since engines prepare constant weights differently from fed ones.
        """
        region = self.regions.joint(names)
        taken = [name for name in region.feeds if name in own]
        gives = {self._outside(name) if name in self.regions.cuts else name: name for name in names}
        part = self.cut.empty()
        graph = part.graph
        graph.node.extend(self.cut.nodes[self.cut.maker[name]] for name in taken)
        for i in region.nodes:
            self._add(graph, i)
        self.cut.add_weights(graph, region.nodes)
        feeds = [name for name in region.feeds if name not in own]
        for name in feeds:
            graph.input.add(name=name).type.tensor_type.elem_type = types[name]
        for name in gives:
            graph.output.add(name=name)
        return Exploded(part.SerializeToString(), tuple(feeds), gives)

    @cached_property
    def _fresh(self) -> dict[str, str]:
        """Return output names where the tensor's own name may be an input; unused in bodies too."""
        names = all_names(self.cut.model.graph)
        return {name: fresh(names, f"{name}__local") for name in self.cut.maker if name in self.regions.cuts}

    def _outside(self, name: str) -> str:
        return self._fresh[name]

    def _add(self, graph: onnx.GraphProto, i: int) -> None:
        node = graph.node.add()
        node.CopyFrom(self.cut.nodes[i])
        for place, name in enumerate(node.output):
            if name in self.regions.cuts:
                node.output[place] = self._outside(name)
