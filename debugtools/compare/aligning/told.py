"""What is said of an alignment: its rows, a sentence, and what there is to say of tensors without counterpart."""

from collections import Counter
from collections.abc import Iterator, Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import Alignment, Unpaired
from layerwise._tool.debugtools.compare.aligning.rows import AlignmentRow
from layerwise._tool.debugtools.compare.rows import Pair
from layerwise._tool.debugtools.compare.sides.side import Side

_REASONS = ("hand", "name", "metadata", "value", "structure")
_NAMED = 5


def rows_of(found: Alignment, pair: Pair) -> Iterator[AlignmentRow]:
    """The rows of table `alignment`. pair: the two sides' places."""
    for each in found.pairs:
        yield AlignmentRow(
            pair=pair, tensor=each.tensor, other=each.other, confidence=each.confidence, reasons=each.reasons,
            layout=each.layout, distance=each.distance,
        )  # fmt: skip
    for one in found.unpaired:
        tensor, other = (one.tensor, "") if one.side == 0 else ("", one.tensor)
        yield AlignmentRow(pair=pair, tensor=tensor, other=other, nearest=one.nearest, distance=one.distance)


def summary(found: Alignment) -> str:
    """How many tensors belong together, why, and how many are alone."""
    counts = Counter(next((reason for reason in _REASONS if reason in pair.reasons), "") for pair in found.pairs)
    told = ", ".join(f"{counts[reason]} by {reason}" for reason in _REASONS if counts[reason])
    alone = [sum(one.side == side for one in found.unpaired) for side in (0, 1)]
    head = f"{len(found.pairs)} tensors paired" + (f" ({told})" if told else "")
    return f"{head}; without counterpart: {alone[0]} of the comparison's model, {alone[1]} of this one"


def missing_texts(found: Alignment, side: Side) -> dict[str, str]:
    """Of tensors of the comparison's model without counterpart: the sentence with the nearest miss."""
    return {one.tensor: _missing(one, side) for one in found.unpaired if one.side == 0 and one.nearest}


def _missing(one: Unpaired, side: Side) -> str:
    near = f"the nearest is {shown(one.nearest, 120)}"
    apart = "" if one.distance is None else f", {one.distance:.3g} apart"
    return f"{shown(side.name, 80)} does not give it: {near}{apart}"


def dropped_text(source: str, kept: int, dropped: Sequence[str], *, anew: bool = False) -> str:
    """What is said of corrections by hand that were made for other models. source: where they come from."""
    told = f"{source} is of other models: {kept} corrections by hand are kept"
    if dropped:
        names = ", ".join(dropped[:_NAMED]) + (f" and {len(dropped) - _NAMED} more" if len(dropped) > _NAMED else "")
        told += f", {len(dropped)} dropped whose tensors are not there any more ({names})"
    return told + (", the rest is found anew" if anew else "")
