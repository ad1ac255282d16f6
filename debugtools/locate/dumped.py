"""A dump of another program as the reference of locating: how it was read, and the pieces of ranks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.ranks import Unclear
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.sides.saved_side import SavedSide
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.table.pieces import joined_lines
from layerwise._tool.surgery.types.shapes import inferred_tensors

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

_NAMED = 3


def read_dump(context: "JobContext", suspect: ModelSide, reference: SavedSide, feed: Mapping[str, Array]) -> None:
    """Say how the reference was read, and join what ranks have pieces of to the shapes that inference finds for `feed`.

    What is not joined is refused, with a warning.
    """
    for note in reference.notes:
        context.log(f"{shown(reference.name, 80)}: {note}")
    if not reference.unsure:
        return
    known = inferred_tensors(suspect.model.cut.model, {name: array.shape for name, array in feed.items()})
    pieces = frozenset(reference.pieces)
    for name in reference.unsure:
        info = known.get(suspect.own(name))
        try:
            if info is not None:
                reference.settle(name, [size for size in info.shape or () if isinstance(size, int)], info.dtype)
            if name in pieces:
                reference.fetch(0, name)
        except Unclear as error:
            reference.refused[name] = str(error)
    for line in joined_lines(reference):
        context.log(line)
    for name, why in list(reference.refused.items())[:_NAMED]:
        context.warn(f"{shown(name, 120)} of {shown(reference.name, 80)} is not looked at: {why}")
    if len(reference.refused) > _NAMED:
        context.warn(f"{len(reference.refused) - _NAMED} other tensors are not looked at either")
