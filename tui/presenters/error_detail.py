"""Everything that is known of one row of the layer error table, and what its columns mean."""

from typing import Any

from layerwise._tool.backends.text import shown
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


def detail_lines(row: dict[str, Any], names: list[str], cells: int, evidence: str = "") -> list[Line]:
    """What is known of one row: name, place, types, both sides' statistics, the worst elements, its own error.

    evidence: what speaks against its node.
    """
    lines: list[Line] = [
        [(shown(str(row.get("tensor", "")), cells), "strong")],
        [("node ", "dim"), (shown(str(row.get("node", "")) or "(no name)", max(20, cells - 30)), ""),
         ("  op ", "dim"), (shown(str(row.get("op", "")), 24), "")],
        _types_line(row),
        [],
    ]  # fmt: skip
    lines += _side_lines(row, names, cells)
    lines.append([])
    lines += _error_lines(row)
    lines += _local_line(row)
    lines += wrap_runs([(shown(evidence, 1000), "strong")], cells)[:2] if evidence else []
    note = str(row.get("note") or "")
    return [*lines, [(shown(note, cells), "warn")]] if note else lines


def _types_line(row: dict[str, Any]) -> Line:
    dtypes = row.get("dtype") or []
    kinds = " / ".join(dict.fromkeys(str(kind) for kind in dtypes)) if isinstance(dtypes, list) else str(dtypes)
    shape = shape_text(row.get("shape"))
    if row.get("shape2") is not None:
        shape += f" / {shape_text(row['shape2'])}"
    line: Line = [
        ("type ", "dim"),
        (f"{kinds} {shape}", ""),
        ("  observed ", "dim"),
        (str(row.get("mode", "-")), ""),
    ]
    return [*line, ("  iteration ", "dim"), (str(row.get("iteration", 0)), "")]


SIDE_COLUMNS = ("mean", "std", "min", "max", "avg_magnitude")


def _side_lines(row: dict[str, Any], names: list[str], cells: int) -> list[Line]:
    stats = row.get("stats") or []
    pair = row.get("pair") or [0, 1]
    room = max(10, min(40, cells - 5 * 10 - 2 * 6))
    titles = "".join(f"{title:>10}" for title in ("mean", "std", "min", "max", "|mean|"))
    lines: list[Line] = [[(f"{'side':<{room}}{titles}{'nan':>6}{'inf':>6}", "head")]]
    for side, values in enumerate(stats):
        number = pair[side] if side < len(pair) else side
        name = names[number] if number < len(names) else f"side {side + 1}"
        known = values or {}
        text = fit(f"{side + 1} {name}", room, keep="start")
        text += "".join(f"{sig(known.get(k), 3):>10}" for k in SIDE_COLUMNS)
        lines.append([(text, ""), *_odd_counts(row, side)])
    return lines


def _odd_counts(row: dict[str, Any], side: int) -> Line:
    line: Line = []
    for key in ("nan", "inf"):
        counts = row.get(key)
        count = counts[side] if isinstance(counts, list) and side < len(counts) else 0
        line.append((f"{count:>6}", "bad" if count else ""))
    return line


def _error_lines(row: dict[str, Any]) -> list[Line]:
    need = row.get("required") or {}
    worst = index_text(row.get("argmax_abs"))
    return [
        [("abs  max ", "dim"), (sig(row.get("max_abs"), 4), "strong"), (" at ", "dim"), (worst, ""),
         ("  mean ", "dim"), (sig(row.get("mean_abs"), 4), ""),
         ("  needs atol ", "dim"), (sig(need.get("abs"), 4), "")],
        [("rel  max ", "dim"), (sig(row.get("max_rel"), 4), "strong"), (" at ", "dim"),
         (index_text(row.get("argmax_rel")), ""), ("  mean ", "dim"), (sig(row.get("mean_rel"), 4), ""),
         ("  needs rtol ", "dim"), (sig(need.get("rel"), 4), "")],
        [("over tolerance ", "dim"), (f"{row.get('over', '-')} of {row.get('size', '?')}", ""),
         ("  atol ", "dim"), (sig(row.get("atol"), 3), ""), ("  rtol ", "dim"), (sig(row.get("rtol"), 3), ""),
         ("  statistic ", "dim"), (str(row.get("stat") or "elemwise"), "")],
        _similarity(row),
    ]  # fmt: skip


def _local_line(row: dict[str, Any]) -> list[Line]:
    word = str(row.get("diagnosis") or "")
    if not word:
        return []
    return [
        [("local rel-L2 ", "dim"), (sig(row.get("local"), 4), "strong"), ("  max abs ", "dim"),
         (sig(row.get("local_abs"), 4), ""), (f"  {word}: ", "bad" if word in FAULTS else "dim"),
         (DIAGNOSES.get(word, ""), "")],
    ]  # fmt: skip


def _similarity(row: dict[str, Any]) -> Line:
    line: Line = []
    for key, title in (("rel_l2", "rel-L2"), ("cosine", "cosine"), ("psnr", "psnr"), ("snr", "snr")):
        if isinstance(row.get(key), (int, float)):
            line += [(f"{title} ", "dim"), (f"{sig(row[key], 4)}  ", "")]
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


def row_text(row: dict[str, Any], names: list[str]) -> str:
    """A row as a block of plain text, to be yanked."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in detail_lines(row, names, 100))
