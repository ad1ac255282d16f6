"""Everything that is known of one row of the layer error table, and what its columns mean."""

from msgspec import UNSET

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.rows import LayerRow, Required
from layerwise._tool.tui.presenters.numbers import index_text, shape_text, sig
from layerwise._tool.tui.presenters.text import Line, fit, wrap_runs
from layerwise._tool.tui.state.error_table import FAULTS

DIAGNOSES = {
    "kernel": "off by more than rounding explains, on the reference's own inputs",
    "ill-conditioned": "computes rightly, but makes small differences of its inputs large",
    "overflow": "a value that is not finite first appears here",
    "nan": "NaN first appears here",
    "propagated": "hands on what came in",
    "clean": "as exact as its dtype allows",
}
"""What a diagnosis means."""


def detail_lines(row: LayerRow, names: list[str], cells: int, evidence: str = "") -> list[Line]:
    """What is known of one row: name, place, types, both sides' statistics, the worst elements, its own error.

    evidence: what speaks against its node.
    """
    lines: list[Line] = [
        [(shown(row.tensor, cells), "strong")],
        [("node ", "dim"), (shown(row.node or "(no name)", max(20, cells - 30)), ""),
         ("  op ", "dim"), (shown(row.op, 24), "")],
        _types_line(row),
        [],
    ]  # fmt: skip
    lines += _side_lines(row, names, cells)
    lines.append([])
    lines += _error_lines(row)
    lines += _local_line(row)
    lines += wrap_runs([(shown(evidence, 1000), "strong")], cells)[:2] if evidence else []
    return [*lines, [(shown(row.note, cells), "warn")]] if row.note else lines


def _types_line(row: LayerRow) -> Line:
    kinds = " / ".join(dict.fromkeys(row.dtype))
    shape = shape_text(row.shape)
    if row.shape2 is not UNSET:
        shape += f" / {shape_text(row.shape2)}"
    line: Line = [
        ("type ", "dim"),
        (f"{kinds} {shape}", ""),
        ("  observed ", "dim"),
        (row.mode or "-", ""),
    ]
    return [*line, ("  iteration ", "dim"), (str(row.iteration), "")]


SIDE_COLUMNS = ("mean", "std", "min", "max", "avg_magnitude")


def _side_lines(row: LayerRow, names: list[str], cells: int) -> list[Line]:
    room = max(10, min(40, cells - 5 * 10 - 2 * 6))
    titles = "".join(f"{title:>10}" for title in ("mean", "std", "min", "max", "|mean|"))
    lines: list[Line] = [[(f"{'side':<{room}}{titles}{'nan':>6}{'inf':>6}", "head")]]
    for side, (number, stats) in enumerate(zip(row.pair, row.stats, strict=False)):
        name = names[number] if number < len(names) else f"side {side + 1}"
        text = fit(f"{side + 1} {name}", room, keep="start")
        text += "".join(f"{sig(getattr(stats, k, None), 3):>10}" for k in SIDE_COLUMNS)
        lines.append([(text, ""), *_odd_counts(row.nan[side], row.inf[side])])
    return lines


def _odd_counts(*counts: int) -> Line:
    return [(f"{count:>6}", "bad" if count else "") for count in counts]


def _error_lines(row: LayerRow) -> list[Line]:
    need = row.required or Required()
    worst = index_text(row.argmax_abs)
    return [
        [("abs  max ", "dim"), (sig(row.max_abs, 4), "strong"), (" at ", "dim"), (worst, ""),
         ("  mean ", "dim"), (sig(row.mean_abs, 4), ""),
         ("  needs atol ", "dim"), (sig(need.abs, 4), "")],
        [("rel  max ", "dim"), (sig(row.max_rel, 4), "strong"), (" at ", "dim"),
         (index_text(row.argmax_rel), ""), ("  mean ", "dim"), (sig(row.mean_rel, 4), ""),
         ("  needs rtol ", "dim"), (sig(need.rel, 4), "")],
        [("over tolerance ", "dim"), (f"{'-' if row.over is None else row.over} of {row.size}", ""),
         ("  atol ", "dim"), (sig(row.atol, 3), ""), ("  rtol ", "dim"), (sig(row.rtol, 3), ""),
         ("  statistic ", "dim"), (row.stat, "")],
        _similarity(row),
    ]  # fmt: skip


def _local_line(row: LayerRow) -> list[Line]:
    word = row.diagnosis
    if not word:
        return []
    return [
        [("local rel-L2 ", "dim"), (sig(row.local, 4), "strong"), ("  max abs ", "dim"),
         (sig(row.local_abs, 4), ""), (f"  {word}: ", "bad" if word in FAULTS else "dim"),
         (DIAGNOSES.get(word, ""), "")],
    ]  # fmt: skip


def _similarity(row: LayerRow) -> Line:
    line: Line = []
    for key, title in (("rel_l2", "rel-L2"), ("cosine", "cosine"), ("psnr", "psnr"), ("snr", "snr")):
        if isinstance(value := getattr(row, key), (int, float)):
            line += [(f"{title} ", "dim"), (f"{sig(value, 4)}  ", "")]
    return line


COLUMN_HELP: tuple[tuple[str, str], ...] = (
    ("#", "position of the node, in the order in which layers run"),
    ("tensor", "its name, without an exporter's _output_0 at the end"),
    ("mode", "executed: as the runner really runs it"),
    ("", "every: all tensors kept, unfused; plain: a graph output"),
    ("", "marked: all marked are outputs of one session"),
    ("max-abs", "largest |a - b|, in the tensor's own unit"),
    ("max-rel", "largest |a - b| / |b|; b is the reference"),
    ("rel-L2", "length of a - b over length of b, for the whole tensor"),
    ("ampl", "error out / largest error in (rel-L2); above 1 the layer"),
    ("", "makes it worse, at 1 it only hands it on"),
    ("local", "rel-L2 of the layer alone, on the reference's inputs (L)"),
    ("accum", "rel-L2 of the whole run: the column rel-L2"),
    ("verdict", "ok or failed under the tolerance"),
    ("", "leap, overflow, nan: the trouble starts in this layer"),
    ("", "propagated: the layer hands on what came in"),
    ("", "skip, random: from random numbers, other ones on each side"),
    ("", "kernel: wrong by itself; ill-conditioned: makes small"),
    ("", "differences large; clean: as exact as its dtype allows"),
    ("minimap", "the whole list in the right-most column: full blocks"),
    ("", "where trouble starts, half ones where it goes on"),
)


def help_lines() -> list[Line]:
    """What each column means."""
    return [[(f"{name:<9}", "key"), (text, "")] for name, text in COLUMN_HELP]


def row_text(row: LayerRow, names: list[str]) -> str:
    """A row as a block of plain text, to be yanked."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in detail_lines(row, names, 100))
