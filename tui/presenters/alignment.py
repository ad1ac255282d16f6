"""Pairs of tensors of two models as lines."""

from layerwise._tool.debugtools.align.alignment import AlignedPair, Alignment, Layout, Unpaired
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import shape_text, sig
from layerwise._tool.tui.presenters.text import Line

_NAME = 34
_SURE = {"certain": "good", "likely": "", "possible": "warn"}


def pair_line(pair: AlignedPair, names: Names) -> Line:
    """A pair: both names, how sure it is and why, how far the values are apart, and the layout."""
    return [
        (f"{names.text(pair.tensor, _NAME)} ", "strong"),
        (f"{names.text(pair.other, _NAME, 'other')} ", ""),
        (f"{pair.confidence:<8} ", _SURE.get(pair.confidence, "")),
        (f"{', '.join(pair.reasons)}", "dim"),
        (f"  {sig(pair.distance, 2)} apart" if pair.distance is not None else "", "dim"),
        (f"  {layout_text(pair.layout)}" if pair.layout else "", ""),
    ]


def alone_line(one: Unpaired, names: Names) -> Line:
    """A tensor without counterpart, with the nearest miss."""
    column, others = ("", "other") if one.side == 0 else ("other", "")
    near = f"nearest {names.text(one.nearest, _NAME, others).rstrip()}" if one.nearest else "nothing is near"
    apart = f", {sig(one.distance, 2)} apart" if one.distance is not None else ""
    whose = "" if one.side == 0 else " (of the other model)"
    return [
        (f"{names.text(one.tensor, _NAME, column)} ", "strong"),
        ("no counterpart", "bad"),
        (f"{whose}  {near}{apart}", "dim"),
    ]


def layout_text(layout: Layout) -> str:
    """How the other side's tensor becomes this one's, in words."""
    steps = [f"as {shape_text(layout.before)}"] if layout.before else []
    steps += [f"axes {' '.join(map(str, layout.permutation))}"] if layout.permutation else []
    steps += [f"to {shape_text(layout.after)}"] if layout.after is not None else []
    return ", ".join(steps)


def head_text(found: Alignment) -> str:
    """What the list is about."""
    alone = sum(one.side == 0 for one in found.unpaired)
    return f"{len(found.pairs):,} tensors paired, {alone:,} without counterpart (type to filter, enter corrects)"
