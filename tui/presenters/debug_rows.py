"""A row each: verdicts of a search, suspects of a locate job, steps of a triage."""

from collections.abc import Mapping
from typing import Any

from backends.text import shown
from tui.presenters.glyphs import Glyphs
from tui.presenters.text import Line, fit, merge

Row = Mapping[str, Any]


def heading(search: str, cells: int) -> Line:
    """Column names of the list below."""
    names = {
        "locate": f"{'#':>6} {'op':<14} {'local':>9} {'accum':>9} {'ampl':>7}  diagnosis       node",
        "triage": f"{'step':<22} {'answer':<8} {'':<8} what was found",
    }
    return [
        (
            fit(
                names.get(search, f"{'n':>4} {'verdict':<8} {'nodes':>7} {'at':>7}  {'by':<11} {'s':>6}  measured"),
                cells,
            ),
            "head",
        )
    ]


def row_line(search: str, row: Row, cells: int, glyphs: Glyphs) -> Line:
    """One row of the list."""
    if search == "locate":
        return _suspect(row, cells)
    if search == "triage":
        return _step(row, cells)
    return _verdict(row, cells, glyphs)


def _verdict(row: Row, cells: int, glyphs: Glyphs) -> Line:
    verdict = _text(row, "verdict", 6)
    role = {"good": "good", "bad": "bad", "skip": "warn"}.get(verdict, "")
    glyph = {"good": glyphs.good, "bad": glyphs.bad}.get(verdict, "?")
    at = f"#{_text(row, 'i', 10)}" if row.get("i") is not None else ""
    tail = measured_text(row.get("measured") or {}) or _text(row, "node", 80)
    numbers = f" {_text(row, 'nodes', 7):>7} {at:>7}  {_text(row, 'by', 11):<11} {_number(row, 'seconds', '.2f'):>6}  "
    rest = fit(numbers + tail, max(0, cells - 13), keep="start")
    return merge([(f"{_text(row, 'n', 4):>4} ", ""), (f"{glyph} {verdict:<6}", role), (rest, "")])


def _suspect(row: Row, cells: int) -> Line:
    errors = f"{_number(row, 'local'):>9} {_number(row, 'accumulated'):>9} {_number(row, 'amplification'):>7}  "
    head = f"{_text(row, 'i', 6):>6} {fit(_text(row, 'op', 60), 14)} {errors}"
    tail = fit(_text(row, "node", 1000), max(0, cells - len(head) - 16), keep="end")
    return merge([(head, ""), (f"{_text(row, 'diagnosis', 15):<16}", "bad"), (tail, "")])


def _step(row: Row, cells: int) -> Line:
    evidence = "; ".join(map(str, row.get("evidence") or []))
    by = "(you)" if row.get("by") == "user" else ""
    answer = _text(row, "answer", 8)
    role = {"yes": "warn", "no": "good"}.get(answer, "")
    rest = fit(evidence, max(0, cells - 41), keep="start")
    title = fit(_text(row, "title", 60), 22)
    return merge([(f"{title} ", ""), (f"{answer:<8}", role), (f" {by:<8} ", "dim"), (rest, "")])


def _text(row: Row, key: str, most: int) -> str:
    value = row.get(key)
    return "" if value is None else shown(str(value), most)


def _number(row: Row, key: str, form: str = ".1e") -> str:
    value = row.get(key)
    return format(value, form) if isinstance(value, int | float) else "-"


def measured_text(measured: Row) -> str:
    """Numbers of a verdict, short."""
    parts = []
    if measured.get("tensor"):
        parts.append(shown(str(measured["tensor"]), 60))
    for key, word in (("max_abs", "max abs"), ("max_rel", "max rel"), ("rel_l2", "rel L2")):
        if isinstance(measured.get(key), int | float):
            parts.append(f"{word} {measured[key]:.3g}")
    if measured.get("over"):
        parts.append(f"{measured['over']:,} elements over" if isinstance(measured["over"], int) else "")
    if "exit_code" in measured:
        parts.append(f"exit code {measured['exit_code']}")
    return "  ".join(part for part in parts if part)
