"""The float original with its tensors rounded as a quantised model's codes hold them: a graph that is run in parts.

Where weights alone are rounded both compute alike, and what is left between the two is rounding of floats. Rounded
activations are the same to begin with; further on values that lie between two codes fall to either side.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx
from msgspec import Struct
from onnx import helper, numpy_helper

from layerwise._tool.debugtools.compare.quantised.grid import Grid, limits
from layerwise._tool.debugtools.compare.quantised.operators import DYNAMIC, QUANTIZE
from layerwise._tool.debugtools.compare.quantised.originals import Originals, Way
from layerwise._tool.debugtools.compare.quantised.sites import BROKEN, Site
from layerwise._tool.surgery.quantise.arithmetic import LEAST_OPSET, fake_nodes
from layerwise._tool.surgery.quantise.emitter import Emitter
from layerwise._tool.surgery.quantise.formats import MINI, Element, Format

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut, Segment

_Slot = tuple[int, int]  # a node, and the place among its inputs


class _Held(Struct, frozen=True, eq=False):
    site: Site
    name: str
    way: Way


class _Passed(Struct, frozen=True, eq=False):
    site: Site
    name: str


class RoundedGraph:
    """cut: the float graph, in whose segments it is run; quantised: the other. weights, activations: what it rounds, as
    far as their places in the float graph are known; weights whose place is not known are in `unknown`.
    """

    def __init__(
        self, cut: "GraphCut", quantised: "GraphCut", originals: Originals, stages: Mapping[str, Collection[str]]
    ) -> None:
        """stages: the float graph's tensor -> what it is called in the quantised one."""
        self._cut, self._quantised, self._originals, self._stages = cut, quantised, originals, stages
        opsets = (entry.version for entry in cut.model.opset_import if entry.domain in ("", "ai.onnx"))
        self._opset = next(opsets, 1)
        self.unknown: list[str] = []
        self.weights: list[Site] = []
        self.activations: list[Site] = []
        self._slots: dict[_Slot, _Held] = {}
        self._rounded: dict[_Slot, _Passed] = {}

    def hold(self, sites: Sequence[Site]) -> None:
        """Round these weights."""
        for site in sites:
            held = self._found(site)
            slots = [] if held is None else self._readers(held.name, self._named(held.name), site.readers)
            taken = {self._slots[slot].site.tensor for slot in slots if slot in self._slots}
            if held is None or not slots or not taken <= {site.tensor}:
                self.unknown.append(site.tensor)
                continue
            self._slots.update({slot: held for slot in slots if slot not in self._slots})
            self.weights.append(site)

    def pass_through(self, sites: Sequence[tuple[Site, str, Sequence[int]]]) -> None:
        """Round these activations, each with its name in the float graph and the nodes that read its codes' values."""
        if self._opset < LEAST_OPSET:
            return
        for site, name, readers in sites:
            if site.grid is not None and _form(site.grid) is None:
                continue
            floats = {out for node in self._quantised.nodes
                      if site.value in node.input and node.op_type not in (*QUANTIZE, DYNAMIC)
                      for out in node.output}  # fmt: skip
            self.activations.append(site)
            passed = _Passed(site, name)
            for slot in self._readers(name, floats if site.value else set(), readers):
                self._rounded.setdefault(slot, passed)

    def _found(self, site: Site) -> _Held | None:
        if site.grid is None or site.codes is None:
            return None
        try:
            found = self._originals.find(site, site.grid.values(site.codes()))
            return None if found is None else _Held(site, found[0], self._originals.way(*found))
        except BROKEN:
            return None

    def _named(self, name: str) -> set[str]:
        """What the quantised graph makes of a weight of that name which it has in floats too."""
        i = self._quantised.maker.get(name)
        if i is not None and self._quantised.nodes[i].op_type != "Constant":
            return set()  # it makes it of codes
        return {out for node in self._quantised.nodes if name in node.input and node.op_type not in QUANTIZE
                for out in node.output}  # fmt: skip

    def _readers(self, name: str, floats: set[str], readers: Sequence[int]) -> list[_Slot]:
        """Who reads a tensor, but those whose results (`floats`) are made of floats in the quantised graph; of a weight
        those whose results bear the names that its readers' do there.
        """
        every = [(i, at) for i, reads in enumerate(self._cut.reads) if name in reads
                 for at, read in enumerate(self._cut.nodes[i].input) if read == name]  # fmt: skip
        left = [slot for slot in every if floats.isdisjoint(self._results(slot[0]))]
        mine = {out for i in readers for out in self._quantised.nodes[i].output}
        return [slot for slot in left if not mine.isdisjoint(self._results(slot[0]))] or left

    def _results(self, i: int) -> list[str]:
        """What a node of the float graph makes, by its own and the quantised graph's names."""
        return [stage for name in self._cut.nodes[i].output if name for stage in (name, *self._stages.get(name, ()))]

    def build(self, segment: "Segment", types: Mapping[str, int]) -> bytes:
        """The segment as a serialised model that rounds."""
        data = self._cut.build(segment, types)
        inside = {i for i, _ in (*self._slots, *self._rounded)}
        if inside.isdisjoint(segment.nodes):
            return data
        part = onnx.ModelProto.FromString(data)
        _Part(part, self._opset).rewrite(self, segment)
        rounded: bytes = part.SerializeToString()
        return rounded

    def value(self, held: _Held) -> onnx.TensorProto:
        """A rounded weight in its original's layout and type."""
        site = held.site
        assert site.grid is not None
        assert site.codes is not None
        return numpy_helper.from_array(self._originals.back(held.name, held.way, site.grid.values(site.codes())))

    def slots(self, i: int) -> list[tuple[int, _Held | _Passed]]:
        """Places among a node's inputs of what is rounded: a weight, or an activation."""
        count = range(len(self._cut.nodes[i].input))
        found = ((at, self._slots.get((i, at)) or self._rounded.get((i, at))) for at in count)
        return [(at, what) for at, what in found if what is not None]


class _Part:
    """One segment while it is changed."""

    def __init__(self, part: onnx.ModelProto, opset: int) -> None:
        self._graph, self._opset = part.graph, opset
        self._made: dict[int, str] = {}

    def rewrite(self, graph: RoundedGraph, segment: "Segment") -> None:
        nodes, before = list(self._graph.node), list[onnx.NodeProto]()
        for node, i in zip(nodes, segment.nodes, strict=True):
            for at, what in graph.slots(i):
                if id(what) not in self._made:
                    self._made[id(what)] = (
                        self._weight(what.name, graph.value(what))
                        if isinstance(what, _Held)
                        else self._passed(what.name, what.site, before)
                    )
                node.input[at] = self._made[id(what)]
            before.append(node)
        read = {name for node in before for name in node.input} | {value.name for value in self._graph.output}
        kept = [tensor for tensor in self._graph.initializer if tensor.name in read]
        del self._graph.initializer[:], self._graph.node[:]
        self._graph.initializer.extend(kept)
        self._graph.node.extend(before)

    def _weight(self, name: str, tensor: onnx.TensorProto) -> str:
        tensor.name = f"{name} (as codes hold it, {len(self._made)})"
        self._graph.initializer.append(tensor)
        return tensor.name

    def _passed(self, name: str, site: Site, nodes: list[onnx.NodeProto]) -> str:
        """The name of an activation as its codes hold it."""
        made = Emitter(f"rounded:{len(self._made)}:", self._opset)
        if site.grid is None:
            ends = [f"{made.prefix}{part}" for part in ("codes", "scale", "zero")]
            made.nodes.append(helper.make_node(DYNAMIC, [name], ends))
            found = made.op("DequantizeLinear", *ends)
        else:
            form = _form(site.grid)
            assert form is not None
            zero = np.zeros(1, np.float32) if site.grid.zero is None else site.grid.zero
            scale, zero = (np.asarray(part, np.float32).reshape(()) for part in (site.grid.scale, zero))
            found = fake_nodes(made, name, form, made.array(scale), made.array(zero))
        nodes += made.nodes
        self._graph.initializer.extend(made.constants)
        return found


def _form(grid: Grid) -> Format | None:
    """The format of an activation's codes, None where it has many scales or no such format is known."""
    known = limits(grid.kind)
    if grid.many or (not known.whole and grid.kind not in MINI):
        return None
    if known.whole:
        return Format("int8", "integer", 8, least=int(known.low), most=int(known.high))
    element: Element = grid.kind  # type: ignore[assignment]
    return Format("fp8e4m3", "float8", 8, element)
