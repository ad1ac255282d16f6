"""The tensors at which the suspect's graph is held against the reference."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from debugtools.compare.sides import ModelSide, Side

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Point:
    """A tensor that both sides have. name: the comparison's; unblocked: brings its values into the model's layout.

    A tensor in a layout of its own can be looked at, but the reference's cannot be fed in its place.
    """

    name: str
    unblocked: Callable[[Array], Array] | None = None


def find_points(
    suspect: ModelSide, reference: Side, opaque: Collection[str], theirs: Collection[str]
) -> dict[str, Point]:
    """Return the points by their tensor in the suspect's observed graph, in topological order.

    opaque: names in that graph that are no tensors (sequences, optionals, maps); theirs: those in the reference's.
    """
    names = suspect.observed.names
    found: Mapping[str, tuple[str, Any]] = names if names is not None else {t: (t, None) for t in suspect.made}
    points = {}
    for tensor in suspect.observed.cut.maker:
        if tensor in found and tensor not in opaque:
            own, unblocked = found[tensor]
            name = suspect.common(own)
            if gives(reference, name) and reference.own(name) not in theirs:
                points[tensor] = Point(name, unblocked)
    return points


def gives(reference: Side, name: str) -> bool:
    """Whether the reference can give a tensor: one that it makes, or one of its weights."""
    if reference.has(name):
        return True
    return isinstance(reference, ModelSide) and reference.own(name) in reference.model.cut.initializers
