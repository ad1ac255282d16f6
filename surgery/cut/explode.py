"""The exploded graph: every region gets its inputs from graph inputs, so one run yields each region's own result.

Fed with the tensors of a reference, each output differs from the reference's by the error of its own region, its
*local* error, regardless of earlier errors. Inputs have the names of the tensors that they replace, so nodes and
bodies are copied unchanged; a tensor that is both cut and made here is output under a new name. Weights stay
external data in the model's own file.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import onnx

from layerwise._tool.surgery.cut.regions import Regions
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.proto import all_names, fresh

_INPUTS_HOLD_NO_WEIGHTS = 4  # from this IR version on, initializers need not be graph inputs


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
        part = onnx.ModelProto(ir_version=max(self.cut.model.ir_version, _INPUTS_HOLD_NO_WEIGHTS))
        part.opset_import.extend(self.cut.model.opset_import)
        part.functions.extend(self.cut.model.functions)
        graph = part.graph
        graph.name = self.cut.model.graph.name or "exploded"
        graph.node.extend(self.cut.nodes[self.cut.maker[name]] for name in taken)
        for i in region.nodes:
            self._add(graph, i)
        self._add_weights(graph, region.nodes)
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

    def _add_weights(self, graph: onnx.GraphProto, nodes: Sequence[int]) -> None:
        cut = self.cut
        for name in dict.fromkeys(name for i in nodes for name in cut.reads[i]):
            if name in cut.initializers:
                graph.initializer.append(cut.initializers[name])
            elif name in cut.sparse:
                graph.sparse_initializer.append(cut.sparse[name])
