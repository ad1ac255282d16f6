"""The outputs of two models belong together whatever else is found."""

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment
from layerwise._tool.debugtools.compare.aligning.by_hand import corrected
from layerwise._tool.debugtools.compare.sides.side import ModelSide


def with_outputs(found: Alignment, base: ModelSide, side: ModelSide) -> Alignment:
    """The alignment with all outputs, which are what a model is used by: equal names belong together, and what is left
    over on both sides, in order.
    """
    mine, theirs = ([name for name in cut.outputs if name in cut.maker] for cut in (base.model.cut, side.model.cut))
    by_hand = {pair.tensor for pair in found.pairs if "hand" in pair.reasons}
    named = [AlignedPair(name, name, "certain", ("name",)) for name in mine if name in theirs and name not in by_hand]
    found = corrected(found, [pair for pair in named if pair not in found.pairs])
    paired = {pair.tensor for pair in found.pairs}, {pair.other for pair in found.pairs}
    left = [name for name in mine if name not in paired[0]], [name for name in theirs if name not in paired[1]]
    if len(left[0]) != len(left[1]):
        return found
    rest = zip(*left, strict=True)
    return corrected(found, [AlignedPair(name, other, "possible", ("structure",)) for name, other in rest])
