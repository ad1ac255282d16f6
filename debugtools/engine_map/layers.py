"""Which nodes of a model each layer of an engine does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from backends.trt.inspect_layers import Layer
from surgery.cut import GraphCut
from surgery.precision_plan import node_label

By = Literal["name", "tensor", "value", ""]


@dataclass(frozen=True)
class Mapped:
    """A layer and its nodes (positions in the model's order). by: what told them; "" where nothing did.

    tensor: the model's tensor that the layer gives, where one is known.
    """

    layer: str
    kind: str
    nodes: tuple[int, ...] = ()
    by: By = ""
    tensor: str = ""


def map_layers(layers: Sequence[Layer], cut: GraphCut, renamed: Mapping[str, str]) -> list[Mapped]:
    """Map each layer by the nodes that TensorRT names for it, else by the tensors that it gives: of their own names, or
    known by their values.

    renamed: TensorRT's names of tensors that are not the model's -> the model's, by value.
    """
    places = {node_label(node): i for i, node in enumerate(cut.nodes)}
    return [_mapped(layer, cut, places, renamed) for layer in layers]


def _mapped(layer: Layer, cut: GraphCut, places: Mapping[str, int], renamed: Mapping[str, str]) -> Mapped:
    given = [tensor.name for tensor in layer.outputs]
    tensor = next((renamed.get(name, name) for name in given if renamed.get(name, name) in cut.maker), "")
    named = tuple(sorted(places[name] for name in {*layer.nodes, layer.name} if name in places))
    if named:
        return Mapped(layer.name, layer.kind, named, "name", tensor)
    for by, names in (("tensor", given), ("value", [renamed[name] for name in given if name in renamed])):
        makers = tuple(sorted({cut.maker[name] for name in names if name in cut.maker}))
        if makers:
            return Mapped(layer.name, layer.kind, makers, "tensor" if by == "tensor" else "value", tensor)
    return Mapped(layer.name, layer.kind)
