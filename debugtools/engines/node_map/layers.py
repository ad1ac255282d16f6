"""Maps each layer of an engine to the nodes of a model that it computes."""

from collections.abc import Mapping, Sequence, Set
from typing import Literal

from msgspec import Struct

from layerwise._tool.backends.trt.inspect.layers import EngineLayer, named_nodes
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.structure import node_label

By = Literal["name", "tensor", "value", ""]


class Mapped(Struct, frozen=True):
    """A layer and its nodes (positions in the model's order). by: the evidence; "" for none.

    tensor: the model's tensor that the layer outputs, if known.
    """

    layer: str
    kind: str
    nodes: tuple[int, ...] = ()
    by: By = ""
    tensor: str = ""


def map_layers(layers: Sequence[EngineLayer], cut: GraphCut, renamed: Mapping[str, str]) -> list[Mapped]:
    """Map each layer by the nodes that TensorRT names for it, else by its output tensors, which have the model's names
    or are recognised by value: the nodes between its inputs and those, or, if not all its inputs are known, the nodes
    that make them.

    renamed: TensorRT's names of tensors that are not the model's -> the model's, by value.
    """
    places = {node_label(node): i for i, node in enumerate(cut.nodes)}
    return [_mapped(layer, cut, places, renamed) for layer in layers]


def _mapped(layer: EngineLayer, cut: GraphCut, places: Mapping[str, int], renamed: Mapping[str, str]) -> Mapped:
    given = [tensor.name for tensor in layer.outputs]
    tensor = next((renamed.get(name, name) for name in given if renamed.get(name, name) in cut.maker), "")
    named = tuple(sorted(places[name] for name in {*layer.nodes, *named_nodes(layer.name, places)} if name in places))
    if named:
        return Mapped(layer.name, layer.kind, named, "name", tensor)
    for by, names in (("tensor", given), ("value", [renamed[name] for name in given if name in renamed])):
        ends = [name for name in names if name in cut.maker]
        if ends:
            nodes = _between(cut, {renamed.get(t.name, t.name) for t in layer.inputs}, ends)
            return Mapped(layer.name, layer.kind, nodes, "tensor" if by == "tensor" else "value", tensor)
    return Mapped(layer.name, layer.kind)


def _between(cut: GraphCut, starts: Set[str], ends: Sequence[str]) -> tuple[int, ...]:
    """Return the nodes from some tensors to others; only the makers of the latter if they need more than these."""
    makers = {cut.maker[name] for name in ends}
    known = all(name in cut.maker or name in cut.initializers or name in cut.inputs for name in starts)
    waiting, found = list(ends) if known else [], set[int]()
    while waiting:
        name = waiting.pop()
        if name in cut.inputs and name not in starts:
            return tuple(sorted(makers))
        at = cut.maker.get(name)
        if name not in starts and at is not None and at not in found:
            found.add(at)
            waiting += cut.reads[at]
    return tuple(sorted(found or makers))
