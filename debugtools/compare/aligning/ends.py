"""The outputs of two models belong together whatever else is found."""

from msgspec.structs import replace

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.align.side_data import SideData
from layerwise._tool.debugtools.compare.aligning.by_hand import corrected
from layerwise._tool.debugtools.compare.sides.side import ModelSide


def with_outputs(
    found: Alignment, base: ModelSide, side: ModelSide, seen: tuple[SideData, SideData] | None = None
) -> Alignment:
    """The alignment with all outputs, which are what a model is used by: equal names belong together, and what is left
    over on both sides, in order. An output of the second side may be the counterpart of an inner tensor as well, as
    where what is wrong comes behind that; an output of the first is no inner tensor's then, if both are of one size.

    seen: what is known of the tensors' values.
    """
    mine, theirs = ([name for name in cut.outputs if name in cut.maker] for cut in (base.model.cut, side.model.cut))
    by_hand = {pair.tensor for pair in found.pairs if "hand" in pair.reasons}
    named = [AlignedPair(name, name, "certain", ("name",)) for name in mine if name in theirs and name not in by_hand]
    found = corrected(found, [pair for pair in named if pair not in found.pairs])
    paired = {pair.tensor: pair.other for pair in found.pairs}
    taken = {pair.other for pair in found.pairs if pair.tensor in mine or "hand" in pair.reasons}
    open_ones = [name for name in mine if name not in by_hand and paired.get(name) not in theirs]
    left = open_ones, [name for name in theirs if name not in taken]
    if len(left[0]) != len(left[1]):
        left = [name for name in open_ones if name not in paired], left[1]
    if len(left[0]) != len(left[1]):
        return found
    rest = [
        AlignedPair(name, other, "possible", ("structure",))
        for name, other in zip(*left, strict=True)
        if name not in paired or _alike(name, other, seen)
    ]
    new = {pair.tensor for pair in rest}, {pair.other for pair in rest}
    unpaired = [one for one in found.unpaired if one.tensor not in new[one.side]]
    kept = [pair for pair in found.pairs if pair.tensor not in new[0]]
    return replace(found, pairs=[*kept, *rest], unpaired=unpaired)


def _alike(name: str, other: str, seen: tuple[SideData, SideData] | None) -> bool:
    """Whether two tensors are known to be of one kind and size."""
    one, two = (seen[0].prints.get(name), seen[1].prints.get(other)) if seen is not None else (None, None)
    return one is not None and two is not None and (one.kind, one.size) == (two.kind, two.size)
