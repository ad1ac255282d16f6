"""What a lens measured of nodes, as rows of the Debug screen and in full."""

import math
from collections.abc import Container, Iterable

from layerwise._tool.backends.text import in_full
from layerwise._tool.debugtools.search.lens.rows import EffectRow
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import sig
from layerwise._tool.tui.presenters.text import Glyphs, Line, merge

_WIDE = 80
_BAND, _LEAST = "graph     ", 20


def effect_heading(cells: int) -> str:
    """Column names of the list of effects."""
    cost = f" {'cost':>9}" if cells >= _WIDE else ""
    return f"{'#':>6} {'op':<14} {'in':<4} {'effect':>9} {'gain':>5} {'own':>9}{cost}  node"


def effect_line(row: EffectRow, cells: int, names: Names, *, kept: bool = False, gain: float | None = None) -> Line:
    """One node: whether it stays in FP32, its effect on the outputs, by how much the predicted error falls if it does
    (gain), its own error, what keeping it costs.
    """
    cost = f" {row.cost:>9.3g}" if cells >= _WIDE else ""
    effect = "not fin." if row.effect is None else sig(row.effect)
    head = f"{row.i:>6} {names.text(row.op, 14, 'op')} "
    falls = "" if gain is None else f"{gain:.0%}"
    own = "" if row.grouped else sig(row.own)
    numbers = f" {falls:>5} {own:>9}{cost}  "
    stays = ("FP32 " if kept else "low  ", "good" if kept else "dim")
    return merge([(head, ""), stays, (f"{effect:>9}", "bad" if row.effect is None else "strong"), (numbers, ""),
                  (names.text(row.node, max(0, cells - len(head) - 14 - len(numbers))), "")])  # fmt: skip


def _shared(row: EffectRow) -> list[str]:
    """Where the effect was not measured of the node alone."""
    if row.grouped > 1:
        return [f"an equal share of what {row.grouped} nodes do together"]
    return ["the difference of two sets"] if row.grouped else []


def lens_text(row: EffectRow, gain: float, form: str) -> str:
    """What a node's low precision does, in one line of the Errors screen."""
    effect = "not finite" if row.effect is None else sig(row.effect)
    falls = "" if math.isnan(gain) else f"; FP32 here takes {gain:.0%} off the error of all nodes in {form}"
    shared = f" ({_shared(row)[0]})" if row.grouped else ""
    return f"{form} alone here moves the worst output by {effect} (relative L2){shared}{falls}; cost {row.cost:.3g}"


def effect_fields(row: EffectRow) -> list[tuple[str, str]]:
    """Names and texts of what is known of a node."""
    effect = "not finite" if row.effect is None else f"{row.effect:.3g}"
    alone = [f"{word} alone {value:.3g}" for word, value in (("weights", row.weight), ("activations", row.activation))
             if value is not None]  # fmt: skip
    signal = (("weights", row.sqnr_weight), ("activations", row.sqnr_activation))
    ratios = [f"{word} {value:.1f} dB" for word, value in signal if value is not None]
    share = f"{row.clipped or 0:.3%} of the values, {row.clipping or 0:.0%} of the squared error"
    clipped = share if row.clipped else ""
    channels = ", ".join(f"{one.channel} ({one.share:.0%})" for one in row.channels)
    outputs = ", ".join(
        f"{in_full(one.name)} {'not finite' if one.error is None else f'{one.error:.3g}'}" for one in row.effects[:6]
    )
    return [
        ("node", f"#{row.i} {row.op} {row.node}"),
        ("effect", ", ".join([f"{effect} on the worst output (relative L2)", *_shared(row), *alone])),
        ("outputs", outputs if len(row.effects) > 1 else ""),
        ("own", f"{sig(row.own)} of its own output" + (f"; channels {channels}" if channels else "")),
        ("SQNR", ", ".join(ratios)),
        ("clipped", clipped),
        ("cost", f"{row.cost:.3g} to keep it in FP32; weights {row.nbytes:,} bytes, {row.flops:,} FLOPs"),
    ]


def effect_band(rows: Iterable[EffectRow], kept: Container[int], here: int | None, cells: int, glyphs: Glyphs) -> Line:
    """The candidates in one line, inputs left, outputs right: the height is the largest effect of those of a cell, on a
    logarithmic scale of two decades; what stays in FP32 and the node `here` have signs of their own.
    """
    order = sorted(rows, key=lambda row: row.i)
    ascii_only = glyphs.ellipsis == "~"
    stays, edge = ("F", "|") if ascii_only else ("▒", "│")
    foot = f"{edge} {stays} FP32 "
    wide = cells - len(_BAND) - 1 - len(foot)
    if not order or wide < _LEAST:
        return []
    cut = [order[k * len(order) // wide : max(k * len(order) // wide + 1, (k + 1) * len(order) // wide)]
           for k in range(wide)]  # fmt: skip
    finite = [row.effect for row in order if row.effect]
    top = max(finite, default=1.0)
    line: Line = [(f"{_BAND}{edge}", "dim")]
    for some in cut:
        row = max(some, key=lambda each: math.inf if each.effect is None else each.effect)
        if any(each.i == here for each in some):
            line.append((glyphs.mark, "mark"))
        elif any(each.i in kept for each in some):
            line.append((stays, "good"))
        else:
            line.append((glyphs.bars[_height(row.effect, top)], "bad" if row.effect is None else "accent"))
    return merge([*line, (foot, "dim")])


def _height(effect: float | None, top: float) -> int:
    """1 to 8: of the largest effect and of what is not finite; of a hundredth of it and less."""
    if effect is None:
        return 8
    share = math.log10(effect / top) / 2 + 1 if effect > 0 else 0.0
    return 1 + round(7 * min(1.0, max(0.0, share)))
