"""The layer error table as styled text."""

import math

from backends.text import shown
from tui.presenters.glyphs import Glyphs
from tui.presenters.numbers import sig
from tui.presenters.text import Line, fit, merge
from tui.state.error_table import FAILED, PASSED, ErrorTable
from tui.state.errors import CLEAN, FOUND, NOTHING, OPEN, WRONG, ErrorsState, RunFacts

NUMBERS = (("max-abs", "max_abs"), ("max-rel", "max_rel"), ("rel-L2", "rel_l2"))
NUMBER_CELLS = 7
AMPL_CELLS = 7
VERDICT_CELLS = 10
PLACE_CELLS = 5
HEADINGS = {
    "graph": "#", "max_abs": "max-abs", "max_rel": "max-rel", "rel_l2": "rel-L2", "ampl": "ampl",
    "verdict": "verdict", "op": "op", "tensor": "tensor",
}  # fmt: skip


def widths(cells: int) -> tuple[int, int, int]:
    """Cells of the op, tensor and mode columns (mode 0: not shown) in a list `cells` wide."""
    op, mode = (14, 9) if cells >= 100 else (10, 0)
    fixed = 2 + PLACE_CELLS + 1 + op + 1 + (mode + 1 if mode else 0) + 1
    numbers = len(NUMBERS) * (NUMBER_CELLS + 1) + AMPL_CELLS + 1 + VERDICT_CELLS
    return op, max(8, cells - fixed - numbers), mode


def heading(cells: int, sort: str, reverse: bool, glyphs: Glyphs) -> Line:
    """The column names; the sorted column carries an arrow."""
    op, tensor, mode = widths(cells)
    arrow = ("^" if reverse else "v") if glyphs.ellipsis == "~" else ("▴" if reverse else "▾")

    def name(text: str) -> str:
        return text + arrow if text == HEADINGS[sort] else text

    text = f"  {name('#'):>{PLACE_CELLS}} {fit(name('op'), op)} {fit(name('tensor'), tensor)} "
    text += f"{fit('mode', mode)} " if mode else ""
    text += " ".join(f"{name(title):>{NUMBER_CELLS}}" for title, _ in NUMBERS)
    return [(fit(f"{text} {name('ampl'):>{AMPL_CELLS}} {name('verdict')}", cells, keep="start"), "head")]


def row_line(table: ErrorTable, place: int, cells: int, glyphs: Glyphs) -> Line:
    """One row of the table, `cells` wide: at most three runs, one when it passed."""
    op, tensor, mode = widths(cells)
    verdict = int(table.verdicts()[place])
    kind = fit(_label(table, "op", place), op, glyphs.ellipsis)
    text = f"{table.numbers('i')[place]:>{PLACE_CELLS}.0f} {kind} "
    text += f"{fit(short_name(table.tensors[place]), tensor, glyphs.ellipsis, keep='end')} "
    text += f"{fit(_label(table, 'mode', place), mode, glyphs.ellipsis)} " if mode else ""
    text += " ".join(f"{sig(float(table.numbers(key)[place])):>{NUMBER_CELLS}}" for _, key in NUMBERS)
    ampl = float(table.numbers("ampl")[place])
    text += f" {'-' if math.isnan(ampl) else sig(ampl):>{AMPL_CELLS}} "
    finding = _label(table, "finding", place)
    glyph = {FAILED: glyphs.bad, PASSED: glyphs.good}.get(verdict, " ")
    word = finding or {FAILED: "failed", PASSED: "ok"}.get(verdict, "-")
    role = verdict_role(verdict, finding)
    return merge([(f"{glyph} ", role), (text, ""), (fit(word, VERDICT_CELLS, glyphs.ellipsis), role)])


def short_name(tensor: str) -> str:
    """A tensor's name without the `_output_0` that exporters put behind the node's."""
    return tensor.removesuffix("_output_0")


def verdict_role(verdict: int, finding: str) -> str:
    """Bad where a layer goes wrong by itself, warn where it only hands on what came in."""
    if verdict != FAILED:
        return "" if finding in ("", "propagated", "skip") else "warn"
    return "warn" if finding == "propagated" else "bad"


def _label(table: ErrorTable, name: str, place: int) -> str:
    codes, kinds = table.labels(name)
    return kinds[int(codes[place])]


def head_lines(state: ErrorsState, cells: int, glyphs: Glyphs) -> list[Line]:
    """Lines over the table: who is compared with whom, how far it is, and what went wrong, if anything."""
    facts = state.facts
    if not state.job:
        return [
            [("no comparison yet", "strong"), ("   R runs one; a finished one opens from Jobs", "dim")],
            [],
        ]
    lines = [_sides(facts, cells, glyphs), _standing(state, glyphs)]
    if facts.card is not None:
        text = f"{glyphs.bad} {facts.card.get('kind', '')}: {facts.card.get('summary', '')}"
        lines.append([(fit(text, cells, glyphs.ellipsis, keep="start"), "bad")])
    elif facts.warning:
        lines.append([(fit(f"warning: {facts.warning}", cells, glyphs.ellipsis, keep="start"), "warn")])
    return lines


def _sides(facts: RunFacts, cells: int, glyphs: Glyphs) -> Line:
    names = facts.runners or ["…"]
    count = max(facts.iterations, facts.iteration + 1)
    iteration = f"   iteration {facts.iteration + 1} of {count}" if count > 1 else ""
    left = cells - len(iteration) - 11 * (len(names) - 1)
    line: Line = []
    for number, name in enumerate(names):
        line += [("  against  ", "dim")] if number else []
        others = sum(min(len(other), left // len(names)) for other in names[number + 1 :])
        room = min(len(shown(name)), max(8, left - others))
        line.append((fit(name, room, glyphs.ellipsis, keep="start"), "strong"))
        left -= room
    line.append((iteration, "dim"))
    return line


def _standing(state: ErrorsState, glyphs: Glyphs) -> Line:
    facts = state.facts
    failed, passed, _ = state.counts()
    line: Line = [(_progress_text(facts, len(state.table)), "")]
    line += [
        ("   ", ""),
        (f"{failed} {glyphs.bad}", "bad" if failed else ""),
        (f" {passed} {glyphs.good}", ""),
    ]
    if facts.tolerance:
        tolerance: Line = [("   tolerance ", "dim"), (facts.tolerance, "")]
    else:
        tolerance = []
    return merge([*line, *_canary(facts), *tolerance])


def _progress_text(facts: RunFacts, rows: int) -> str:
    words = {"queued": "waiting for a slot", "waiting": "waiting for an answer", "": "opening"}
    if facts.state == "running":
        return f"{facts.done} of {facts.total or '?'} {facts.unit or 'tensors'}"
    return words.get(facts.state, f"{facts.state}: {rows} rows")


def _canary(facts: RunFacts) -> Line:
    canary = (facts.result or {}).get("canary")
    if not isinstance(canary, dict):
        return []
    if canary.get("ok"):
        return [("   canary ", "dim"), ("ok", "good")]
    return [("   canary ", "dim"), ("moved " + sig(canary.get("moved")), "bad")]


MINIMAP = {
    NOTHING: (" ", ""),
    CLEAN: (" ", ""),
    OPEN: ("░", "dim"),
    WRONG: ("▒", "warn"),
    FOUND: ("█", "bad"),
}
ASCII_MINIMAP = {NOTHING: " ", CLEAN: " ", OPEN: ".", WRONG: "o", FOUND: "#"}


def minimap_cell(severity: int, in_view: bool, glyphs: Glyphs) -> Line:
    """One line of the minimap: the worst verdict of its part of the list, and if that part is in view."""
    text, role = MINIMAP[severity]
    if glyphs.ellipsis == "~":
        text = ASCII_MINIMAP[severity]
    return [(glyphs.box[1] if in_view else " ", "dim"), (text, role)]
