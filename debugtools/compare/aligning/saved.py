"""Saved outputs and dumps whose names say nothing: what they hold is found among a model's tensors by value."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from layerwise._tool.backends.dumps.ranks import Unclear
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import Alignment, Unpaired
from layerwise._tool.debugtools.align.by_value import dump_graph
from layerwise._tool.debugtools.align.distance import distance
from layerwise._tool.debugtools.align.fingerprint import Fingerprint, fingerprint
from layerwise._tool.debugtools.align.side_data import SideData
from layerwise._tool.debugtools.compare.aligning.graphs import digest
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.sides.side import ModelSide

_SHAPES = 16  # shapes that pieces are tried to be joined to
_NAMED = 3


def names_fail(side: SavedSide, base: "ModelSide") -> bool:
    """Whether a file's names leave tensors of it and of the model alone."""
    cut = base.model.cut
    known = {*cut.maker, *cut.inputs, *cut.initializers}
    names = side.names(0)
    return any(name not in known for name in names) and bool(cut.maker.keys() - set(names))


def saved_data(side: SavedSide, base: SideData) -> SideData:
    """What a file's tensors are like, those of the first iteration, one at a time. base: of the model: what ranks have
    pieces of is joined as one of its tensors is, if any is.
    """
    results = side.own_results(0)
    prints = dict(_prints(side, base))
    graph = dump_graph(list(results))
    return SideData(graph, prints, digest(graph))


def _prints(side: SavedSide, base: SideData) -> Iterator[tuple[str, Fingerprint]]:
    for own in side.own_results(0):
        if own in side.own_pieces:
            found = _joined(side, own, base)
        else:
            found = fingerprint(side.own_results(0)[own])
        if found is not None:
            yield own, found


def _joined(side: SavedSide, own: str, base: SideData) -> Fingerprint | None:
    """Pieces joined to the shape in which they come nearest to a tensor of the model, None if they come near none."""
    best: tuple[float, Fingerprint, tuple[int, ...]] | None = None
    for shape in side.shapes_of_pieces(own, {known.shape for known in base.prints.values()})[:_SHAPES]:
        try:
            made = fingerprint(side.joined_to(own, shape))
        except Unclear:
            continue
        alike = [known for known in base.prints.values() if known.shape == shape and known.kind == made.kind]
        far = min((distance(known, made).in_order for known in alike), default=9.0)
        if far < 0.3 and (best is None or far < best[0]):
            best = far, made, shape
    side.unsettle(own)
    if best is not None:
        side.joined_to(own, best[2])
    return best[1] if best is not None else None


def told_saved(found: Alignment, side: SavedSide) -> Iterator[str]:
    """What is said of tensors of the file that none of the model is, for sure."""
    near = [one for one in found.unpaired if one.side == 1 and one.nearest]
    if near:
        told = ", ".join(_miss(one) for one in near[:_NAMED]) + ", …" * (len(near) > _NAMED)
        yield f"{shown(side.name, 80)}: not one of the model's tensors for sure: {told}"


def _miss(one: Unpaired) -> str:
    apart = "" if one.distance is None else f", {one.distance:.2g} apart"
    return f"{shown(one.tensor, 100)} (nearest {shown(one.nearest, 100)}{apart})"
