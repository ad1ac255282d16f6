"""The tensors that both sides of a location have, and how the reference's are given to the suspect's graph."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.sides.side import ModelSide, Side
from layerwise._tool.debugtools.compare.sides.stream import Held
from layerwise._tool.debugtools.locate.part import fit


@dataclass(frozen=True, slots=True)
class Point:
    """A tensor that both sides have. name: the comparison's; layout: how the suspect's observed graph holds it."""

    name: str
    layout: Held | None = None

    def plain(self, array: Array) -> Array:
        """The suspect's tensor as the model has it."""
        return self.layout(array) if self.layout else array

    @property
    def typed(self) -> bool:
        """Whether any reference's tensor can be had in the suspect's type."""
        return self.layout is not None and self.layout.typed

    def fed(self, array: Array, dtype: "np.dtype[Any] | None") -> Array:
        """The reference's tensor as the suspect's graph takes it; dtype: there."""
        if self.layout is None:
            return fit(array, dtype)
        return self.layout.back(array if self.layout.typed else fit(array, dtype))


def find_points(
    suspect: ModelSide, reference: Side, opaque: Collection[str], theirs: Collection[str]
) -> dict[str, Point]:
    """Return the points by their tensor in the suspect's observed graph, in topological order.

    opaque: names in that graph that are no tensors (sequences, optionals, maps); theirs: those in the reference's.

    What a Transpose makes of a point is none where the reference has its values in another order: whichever order it
    makes would be found there, so that nothing held it against the right one. Nor is a tensor that is paired for its
    value alone, such as a length of 16 among others: it would hide what made it wrong from whoever reads it.
    """
    names = suspect.observed.names
    found: Mapping[str, tuple[str, Held | None]] = names if names is not None else {t: (t, None) for t in suspect.made}
    points = {}
    for tensor in suspect.observed.cut.maker:
        if tensor in found and tensor not in opaque:
            own, layout = found[tensor]
            name = suspect.common(own)
            node = suspect.observed.cut.nodes[suspect.observed.cut.maker[tensor]]
            turns = node.op_type == "Transpose" and node.input[0] in points and reference.naming.turned(name)
            circular = turns or reference.naming.by_value_alone(name)
            if gives(reference, name) and reference.own(name) not in theirs and not circular:
                points[tensor] = Point(name, layout)
    return points


def gives(reference: Side, name: str) -> bool:
    """Whether the reference can give a tensor: one that it makes, or one of its weights."""
    if reference.has(name):
        return True
    return isinstance(reference, ModelSide) and reference.own(name) in reference.model.cut.initializers
