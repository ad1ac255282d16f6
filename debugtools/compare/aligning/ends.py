"""The outputs of two models belong together whatever else is found."""

from msgspec.structs import replace

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.compare.aligning.by_hand import corrected
from layerwise._tool.debugtools.compare.sides.side import ModelSide


def with_outputs(found: Alignment, base: ModelSide, side: ModelSide) -> Alignment:
    """The alignment with all outputs, which are what a model is used by: equal names belong together, and what is left
    over on both sides, in order. An output of the second side may be the counterpart of an inner tensor as well, as
    where what is wrong comes behind that.
    """
    mine, theirs = ([name for name in cut.outputs if name in cut.maker] for cut in (base.model.cut, side.model.cut))
    by_hand = {pair.tensor for pair in found.pairs if "hand" in pair.reasons}
    named = [AlignedPair(name, name, "certain", ("name",)) for name in mine if name in theirs and name not in by_hand]
    found = corrected(found, [pair for pair in named if pair not in found.pairs])
    paired = {pair.tensor for pair in found.pairs}
    taken = {pair.other for pair in found.pairs if pair.tensor in mine or "hand" in pair.reasons}
    left = [name for name in mine if name not in paired], [name for name in theirs if name not in taken]
    if len(left[0]) != len(left[1]):
        return found
    rest = [AlignedPair(name, other, "possible", ("structure",)) for name, other in zip(*left, strict=True)]
    new = {pair.tensor for pair in rest}, {pair.other for pair in rest}
    unpaired = [one for one in found.unpaired if one.tensor not in new[one.side]]
    return replace(found, pairs=[*found.pairs, *rest], unpaired=unpaired)
