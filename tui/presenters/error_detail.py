"""One row of the layer error table in full: what is known of it, and what the columns mean."""

from collections.abc import Iterable

from msgspec import UNSET
from rich.cells import cell_len

from layerwise._tool.backends.text import in_full, shown
from layerwise._tool.debugtools.compare.quantised.told import held_text
from layerwise._tool.debugtools.compare.rows import LayerRow, Required
from layerwise._tool.debugtools.compare.truth.figures import LIMIT, times
from layerwise._tool.surgery.origin.origin import dotted
from layerwise._tool.tui.presenters.around import side_columns
from layerwise._tool.tui.presenters.names import shorten
from layerwise._tool.tui.presenters.numbers import index_text, shape_text, sig
from layerwise._tool.tui.presenters.source import source_line
from layerwise._tool.tui.presenters.text import Glyphs, Line, Run, fit, plain, width, wrap_runs
from layerwise._tool.tui.presenters.verdicts import MEANINGS


def detail_lines(
    row: LayerRow, names: list[str], cells: int, word: Run = ("", ""), evidence: str = "", lens: str = ""
) -> list[Line]:
    """What is known of one row, the most telling first: name, what it comes to and why, errors, both sides' statistics.

    word: what it comes to, and the role of that. evidence: what speaks against its node.
    lens: what its low precision does.
    """
    lines = [*_name_lines(row), *_reason_lines(row, word)]
    lines += [[(shown(evidence, 1000), "strong")]] if evidence else []
    lines += [*_error_lines(row, cells), *_local_line(row), *_truth_line(row)]
    lines += _quantised_line(row)
    lines += [[("low precision ", "dim"), (lens, "")]] if lens else []
    lines += _side_lines(row, names, cells) if cells >= _SIDE_BY_SIDE else side_columns(row, names, cells)
    lines += [*_place_lines(row, cells), _origin_line(row, cells)]
    return [part for line in lines if line for part in wrap_runs(line, cells, 2)]


def brief_lines(
    row: LayerRow, cells: int, word: Run, glyphs: Glyphs, others: Iterable[str] = ()
) -> list[Line]:  # fmt: skip
    """A row in two lines: its whole name, and what it comes to and why; enter shows all of it.

    One run a line: both change at each move of the cursor, and each run costs some 45 bytes. A reason that one line
    does not hold begins behind the name, which gives way to it. others: names from which it stays different where
    it is shortened.
    """
    text, role = word
    why = shown(row.note or MEANINGS.get(text, ""), 1000)
    numbers = f"  max-abs {sig(row.max_abs)} at {index_text(row.argmax_abs)}  ampl {sig(row.ampl)}"
    told = f"{text}: {why}" if why else text
    told += numbers if cell_len(told) + cell_len(numbers) <= cells else ""
    more = f"{glyphs.ellipsis} enter"
    if cell_len(told) > cells:
        name = _name_in(row.tensor, max(_LEAST, 2 * cells - cell_len(told) - _LEAST), glyphs, others)
        first, *rest = wrap_runs([(f"{name}  ", "strong"), (told, role)], cells)
        end = "".join(map(plain, rest))
        return [[(" ", ""), *first], [(f" {fit(end, cells, more, keep='start')}", role)]]
    return [
        [(f" {_name_in(row.tensor, cells, glyphs, others)}", "strong")],
        [(f" {fit(told, cells, more, keep='start')}", role)],
    ]


def _name_in(name: str, cells: int, glyphs: Glyphs, others: Iterable[str]) -> str:
    return shorten({one: one for one in (name, *others)}, cells, glyphs.ellipsis)[name]


def _reason_lines(row: LayerRow, word: Run) -> list[Line]:
    """What the row comes to, and what that means or why it is so."""
    text, role = word
    if not text and not row.note:
        return []
    why = shown(row.note or MEANINGS.get(text, ""), 1000)
    return [[(f"{text}: " if text and why else text, role), (why, "")]]


def _place_lines(row: LayerRow, cells: int) -> list[Line]:
    """The tensor's type, and the node: names last, which have any length."""
    node: Line = [("op ", "dim"), (shown(row.op, 24), ""), ("  node ", "dim"), (in_full(row.node) or "(no name)", "")]
    kind = _types_line(row)
    if width(kind) + 2 + width(node) <= cells:
        return [[*kind, ("  ", ""), *node]]
    return [kind, node]


def _origin_line(row: LayerRow, cells: int) -> Line:
    """The module that the tensor's node comes from, and the line of Python; none where its name is all that tells."""
    if row.source is UNSET or row.module is UNSET:
        return []
    room = max(8, (cells - 9) // 2)
    module: Line = [("module ", "dim"), (fit(dotted(row.module), room, keep="end").rstrip() + "  ", "")]
    return [*module, *source_line(row.source, cells - width(module))]


def _name_lines(row: LayerRow) -> list[Line]:
    """The tensor, and what the reference calls it where that is another name."""
    lines: list[Line] = [[(in_full(row.tensor), "strong")]]
    return lines if row.tensor2 is UNSET else [*lines, [("against ", "dim"), (in_full(row.tensor2), "")]]


def _types_line(row: LayerRow) -> Line:
    kinds = " / ".join(dict.fromkeys(row.dtype))
    shape = shape_text(row.shape)
    if row.shape2 is not UNSET:
        shape += f" / {shape_text(row.shape2)}"
    line: Line = [
        ("type ", "dim"),
        (f"{kinds} {shape}".ljust(18), ""),
        ("  observed ", "dim"),
        (f"{row.mode or '-':<8}", ""),
    ]
    return [*line, ("  iteration ", "dim"), (str(row.iteration), ""), ("  statistic ", "dim"), (row.stat, "")]


_LEAST = 16
"""Cells of a name, at least; and those that may be left at the end of a line for a long word."""
_SIDE_BY_SIDE = 76
_SIDE_COLUMNS = ("mean", "std", "min", "max", "avg_magnitude")


def _side_lines(row: LayerRow, names: list[str], cells: int) -> list[Line]:
    room = max(10, min(40, cells - 5 * 10 - 2 * 6))
    titles = "".join(f"{title:>10}" for title in ("mean", "std", "min", "max", "|mean|"))
    lines: list[Line] = [[(f"{'side':<{room}}{titles}{'nan':>6}{'inf':>6}", "head")]]
    for side, (number, stats) in enumerate(zip(row.pair, row.stats, strict=False)):
        name = names[number] if number < len(names) else f"side {side + 1}"
        text = fit(f"{side + 1} {name}", room - 1) + " "
        text += "".join(f"{sig(getattr(stats, k, None), 3):>10}" for k in _SIDE_COLUMNS)
        lines.append([(text, ""), *_odd_counts(row.nan[side], row.inf[side])])
    return lines


def _odd_counts(*counts: int) -> Line:
    return [(f"{count:>6}", "bad" if count else "") for count in counts]


def _error_lines(row: LayerRow, cells: int) -> list[Line]:
    """The numbers stand in columns where there is room, so that they alone change from row to row."""
    need = row.required or Required()
    over = f"{'-' if row.over is None else row.over} of {row.size}"
    number, place, count = (9, 16, 19) if cells >= _SIDE_BY_SIDE else (0, 0, 0)

    def of(word: str, most: object, where: str, mean: object, needs: str, least: object) -> Line:
        return [(f"{word}  max ", "dim"), (f"{sig(most, 4):<{number}}", "strong"), (" at ", "dim"),
                (f"{where:<{place}}", ""), ("  mean ", "dim"), (f"{sig(mean, 4):<{number}}", ""),
                (f"  needs {needs} ", "dim"), (sig(least, 4), "")]  # fmt: skip

    return [
        of("abs", row.max_abs, index_text(row.argmax_abs), row.mean_abs, "atol", need.abs),
        of("rel", row.max_rel, index_text(row.argmax_rel), row.mean_rel, "rtol", need.rel),
        [("over tolerance ", "dim"), (f"{over:<{count}}", ""),
         ("  atol ", "dim"), (f"{sig(row.atol, 3):<{number}}", ""),
         ("  rtol ", "dim"), (sig(row.rtol, 3), "")],
        _similarity(row, number),
    ]  # fmt: skip


def _local_line(row: LayerRow) -> list[Line]:
    if not row.diagnosis:
        return []
    return [
        [("local rel-L2 ", "dim"), (sig(row.local, 4), "strong"), ("  max-abs ", "dim"), (sig(row.local_abs, 4), "")],
    ]  # fmt: skip


def _quantised_line(row: LayerRow) -> list[Line]:
    """How codes of few bits hold the tensor."""
    if row.quantised is UNSET:
        return []
    held = row.quantised
    return [[("quantised ", "dim"), (held_text(held), "bad" if held.word else "")]]


def _truth_line(row: LayerRow) -> list[Line]:
    """How far both sides are from the truth, in what rounding explains."""
    if row.truth is UNSET:
        return []
    found = row.truth
    if found.suspect is None:
        return [[("truth ", "dim"), (f"none: {shown(found.why, 300)}", "warn")]]
    role = "bad" if found.suspect > LIMIT else "strong"
    return [
        [("truth ", "dim"), (f"\u00d7{times(found.suspect)}", role), (f" {found.kind}", ""), ("  reference ", "dim"),
         (f"\u00d7{times(found.reference)}", ""), ("  accumulated ", "dim"), (f"\u00d7{times(found.accumulated)}", "")],
    ]  # fmt: skip


def _similarity(row: LayerRow, number: int) -> Line:
    line: Line = []
    for key, title in (("rel_l2", "rel-L2"), ("cosine", "cosine"), ("psnr", "psnr"), ("snr", "snr")):
        if isinstance(value := getattr(row, key), (int, float)):
            line += [(f"{title} ", "dim"), (f"{sig(value, 4):<{number}}  ", "")]
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
    ("\u00d7", "times what rounding explains the layer is off by itself, against"),
    ("", "the reference's graph in FP64 on the side's own inputs (--truth)"),
    ("accum", "rel-L2 of the whole run: the column rel-L2"),
    ("effect", "of the worst output, with this node alone in the lens's format"),
    ("gain", "share by which the error of all in that format falls without it"),
    ("L2 log10", "the bar: rel-L2 on a log scale, empty at 1e-8, full at 1"),
    ("verdict", "ok or failed under the tolerance"),
    ("", "leap, overflow, nan: the trouble starts in this layer"),
    ("", "propagated: the layer hands on what came in"),
    ("", "skip, random: from random numbers, other ones on each side"),
    ("", "kernel: wrong by itself; ill-conditioned: makes small"),
    ("", "differences large; clean: as exact as its dtype allows"),
    ("minimap", "the whole list in the right-most column: full blocks"),
    ("", "where trouble starts, half ones where it goes on"),
    ("module", "of PyTorch that the node comes from; m sums up its layers:"),
    ("", "smallest, median, largest error, and how many failed"),
)


def help_lines() -> list[Line]:
    """What each column means."""
    return [[(f"{name:<9}", "key"), (text, "")] for name, text in COLUMN_HELP]


def row_text(row: LayerRow, names: list[str], word: Run = ("", "")) -> str:
    """A row as a block of plain text, to be yanked."""
    return "\n".join(plain(line).rstrip() for line in detail_lines(row, names, 100, word))
