"""A row each: verdicts of a search, suspects of a locate job, steps of a triage."""

from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.numbers import sig
from layerwise._tool.tui.presenters.text import Line, clip, fit, merge

Row = Mapping[str, Any]


_HEADINGS = {
    "locate": f"{'#':>6} {'op':<14} {'local':>9} {'accum':>9} {'ampl':>7}  diagnosis       node",
    "triage": f"{'step':<24} {'answer':<8} {'':<8} what was found",
}
_VERDICTS = f"{'n':>4} {'verdict':<8} {'nodes':>7} {'at':>7}  {'by':<11} {'s':>6}  node, measured"


def heading(search: str, cells: int) -> Line:
    """Column names of the list below."""
    return [(fit(_HEADINGS.get(search, _VERDICTS), cells), "head")]


def row_line(search: str, row: Row, cells: int, glyphs: Glyphs) -> Line:
    """One row of the list."""
    styled = {"locate": _suspect, "triage": _step}.get(search, _verdict)
    return clip(styled(row, cells, glyphs), cells)


def _verdict(row: Row, cells: int, glyphs: Glyphs) -> Line:
    verdict = _text(row, "verdict", 6)
    role = {"good": "good", "bad": "bad", "skip": "warn"}.get(verdict, "")
    glyph = {"good": glyphs.good, "bad": glyphs.bad}.get(verdict, "?")
    at = f"#{_text(row, 'i', 10)}" if row.get("i") is not None else ""
    numbers = f" {_text(row, 'nodes', 7):>7} {at:>7}  {_text(row, 'by', 11):<11} {_number(row, 'seconds', '.2f'):>6}  "
    parts = (_text(row, "node", 80), measured_text(row.get("measured") or {}, named=False), _text(row, "note", 200))
    rest = fit(numbers + "  ".join(part for part in parts if part), max(0, cells - 13), glyphs.ellipsis, keep="start")
    if row.get("undone"):
        return [(f"{_text(row, 'n', 4):>4} {glyph} {'undone':<6}{rest}", "dim")]
    return merge([(f"{_text(row, 'n', 4):>4} ", ""), (f"{glyph} {verdict:<6}", role), (rest, "")])


def _suspect(row: Row, cells: int, glyphs: Glyphs) -> Line:
    errors = f"{sig(row.get('local')):>9} {sig(row.get('accumulated')):>9} {sig(row.get('amplification')):>7}  "
    head = f"{_text(row, 'i', 6):>6} {fit(_text(row, 'op', 60), 14)} {errors}"
    tail = fit(_text(row, "node", 1000), max(0, cells - len(head) - 16), glyphs.ellipsis, keep="end")
    return merge([(head, ""), (f"{_text(row, 'diagnosis', 15):<16}", "bad"), (tail, "")])


def _step(row: Row, cells: int, glyphs: Glyphs) -> Line:
    evidence = "; ".join(map(str, row.get("evidence") or []))
    by = "(you)" if row.get("by") == "user" else ""
    answer = _text(row, "answer", 8)
    role = {"yes": "warn", "no": "good"}.get(answer, "")
    rest = fit(evidence, max(0, cells - 43), glyphs.ellipsis, keep="start")
    title = fit(_text(row, "title", 60), 24, glyphs.ellipsis, keep="start")
    return merge([(f"{title} ", ""), (f"{answer:<8}", role), (f" {by:<8} ", "dim"), (rest, "")])


def _text(row: Row, key: str, most: int) -> str:
    value = row.get(key)
    return "" if value is None else shown(str(value), most)


def _number(row: Row, key: str, form: str) -> str:
    value = row.get(key)
    return format(value, form) if isinstance(value, int | float) else "-"


def measured_text(measured: Row, *, named: bool = True) -> str:
    """Numbers of a verdict, short; with the tensor's name."""
    parts = []
    if named and measured.get("tensor"):
        parts.append(shown(str(measured["tensor"]), 60))
    for key, word in (("max_abs", "max abs"), ("max_rel", "max rel"), ("rel_l2", "rel L2")):
        if isinstance(measured.get(key), int | float):
            parts.append(f"{word} {measured[key]:.3g}")
    if measured.get("over"):
        parts.append(f"{measured['over']:,} elements over" if isinstance(measured["over"], int) else "")
    if "exit_code" in measured:
        parts.append(f"exit code {measured['exit_code']}")
    if measured.get("note"):
        parts.append(shown(str(measured["note"]), 120))
    return "  ".join(part for part in parts if part)
