"""The layer error table as styled text."""

import math
from dataclasses import dataclass

from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.origin.origin import dotted
from layerwise._tool.tui.presenters.numbers import sig
from layerwise._tool.tui.presenters.text import Glyphs, Line, Run, fit, merge, sentence_lines, width
from layerwise._tool.tui.state.error_table import FAILED, PASSED, ErrorTable
from layerwise._tool.tui.state.errors_page import CLEAN, FOUND, NOTHING, OPEN, WRONG, ErrorsState
from layerwise._tool.tui.state.job_rows import RunFacts

NUMBERS = (("max-abs", "max_abs"), ("max-rel", "max_rel"), ("rel-L2", "rel_l2"))
LOCAL_NUMBERS = (("local", "local"), ("accum", "rel_l2"))
TIMES = ("\u00d7", "times")
NUMBER_CELLS = 7
AMPL_CELLS = 7
VERDICT_CELLS = 10
DIAGNOSIS_CELLS = 15
PLACE_CELLS = 5
WIDE = 100
MODULE_ROOM = 30
BUILDING = "build steps"
HEADINGS = {
    "graph": "#", "max_abs": "max-abs", "max_rel": "max-rel", "rel_l2": "rel-L2", "ampl": "ampl",
    "verdict": "verdict", "op": "op", "tensor": "tensor", "local": "local",
    "times": TIMES[0],
}  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """Cells of the op, tensor, module, mode and verdict columns; numbers: (heading, key) of those shown.

    module, mode: 0 where they are not shown.
    """

    op: int
    tensor: int
    module: int
    mode: int
    verdict: int
    numbers: tuple[tuple[str, str], ...]


def columns(cells: int, local: bool, truth: bool = False, modules: bool = False) -> Columns:
    """The columns of a list `cells` wide. local: local errors are known; where it is narrow they take the place of
    the largest differences. truth: so is how far layers are from the truth; where it is narrow in place of max-rel.
    modules: the exporter noted them; shown where tensors leave room.
    """
    op, mode = (14, 9) if cells >= WIDE else (10, 0)
    numbers = NUMBERS if not local else (NUMBERS[0], *LOCAL_NUMBERS) if cells >= WIDE else LOCAL_NUMBERS
    if truth:
        numbers = (*(numbers if cells >= WIDE or local else (NUMBERS[0], NUMBERS[2])), TIMES)
    verdict = DIAGNOSIS_CELLS if local else VERDICT_CELLS
    fixed = 2 + PLACE_CELLS + 1 + op + 1 + (mode + 1 if mode else 0) + 1
    taken = len(numbers) * (NUMBER_CELLS + 1) + AMPL_CELLS + 1 + verdict
    tensor = max(8, cells - fixed - taken)
    module = tensor * 3 // 5 if modules and cells >= WIDE and tensor >= MODULE_ROOM else 0
    return Columns(op, tensor - module - bool(module), module, mode, verdict, numbers)


def heading(
    cells: int, sort: str, reverse: bool, glyphs: Glyphs, local: bool = False, truth: bool = False,
    modules: bool = False,
) -> Line:  # fmt: skip
    """The column names; the sorted column carries an arrow."""
    shape = columns(cells, local, truth, modules)
    arrow = ("^" if reverse else "v") if glyphs.ellipsis == "~" else ("▴" if reverse else "▾")
    sorted_by = "accum" if local and sort == "rel_l2" else HEADINGS[sort]

    def name(text: str) -> str:
        return text + arrow if text == sorted_by else text

    text = f"  {name('#'):>{PLACE_CELLS}} {fit(name('op'), shape.op)} {fit(name('tensor'), shape.tensor)}"
    text += f" {fit('module', shape.module)}" if shape.module else ""
    text += f" {fit('mode', shape.mode)}" if shape.mode else ""
    text += "".join(f"{name(title):>{NUMBER_CELLS + 1}}" for title, _ in shape.numbers)  # the arrow takes the gap
    return [(fit(f"{text} {name('ampl'):>{AMPL_CELLS}} {name('verdict')}", cells, keep="start"), "head")]


def row_line(table: ErrorTable, place: int, cells: int, glyphs: Glyphs) -> Line:
    """One row of the table, `cells` wide: at most three runs, one when it passed."""
    shape = columns(cells, table.has_local, table.has_truth, table.noted)
    verdict = int(table.verdicts()[place])
    kind = fit(_label(table, "op", place), shape.op, glyphs.ellipsis)
    text = f"{table.numbers('i')[place]:>{PLACE_CELLS}.0f} {kind} "
    text += f"{fit(short_name(table.tensors[place]), shape.tensor, glyphs.ellipsis, keep='end')} "
    text += f"{fit(_module(table, place), shape.module, glyphs.ellipsis, keep='end')} " if shape.module else ""
    text += f"{fit(_label(table, 'mode', place), shape.mode, glyphs.ellipsis)} " if shape.mode else ""
    text += " ".join(f"{_number(table, key, place):>{NUMBER_CELLS}}" for _, key in shape.numbers)
    text += f" {_number(table, 'ampl', place):>{AMPL_CELLS}} "
    word, role = word_of(table, place)
    glyph = {FAILED: glyphs.bad, PASSED: glyphs.good}.get(verdict, " ")
    return merge([(f"{glyph} ", role), (text, ""), (fit(word, shape.verdict, glyphs.ellipsis), role)])


def _module(table: ErrorTable, place: int) -> str:
    path = table.module(place)
    return "" if path is None else dotted(path)


def number_text(value: float) -> str:
    """A number that need not be known."""
    return "-" if math.isnan(value) else sig(value)


def _number(table: ErrorTable, key: str, place: int) -> str:
    value = float(table.numbers(key)[place])
    return "-" if math.isnan(value) and key in ("ampl", "local", "times") else sig(value)


def word_of(table: ErrorTable, place: int) -> Run:
    """The diagnosis of what is at fault or hands an error on, else the finding, else the verdict; and its role."""
    verdict = int(table.verdicts()[place])
    finding, diagnosis = _label(table, "finding", place), _label(table, "diagnosis", place)
    if bool(table.numbers("suspect")[place] == 1):
        return diagnosis, "bad" if verdict == FAILED else "warn"
    told = finding
    if verdict == FAILED and diagnosis not in ("", "clean") and not (table.imprecise and diagnosis == "kernel"):
        told = diagnosis
    return told or {FAILED: "failed", PASSED: "ok"}.get(verdict, "-"), verdict_role(verdict, told)


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
    lines = [_sides(facts, cells, glyphs), _standing(state, cells, glyphs)]
    lines += _truth(facts, cells, glyphs)
    if facts.card is not None and len(state.table):
        text = f"{glyphs.bad} {facts.card.get('kind', '')}: {facts.card.get('summary', '')}"
        lines += sentence_lines(text, "bad", cells, glyphs)
    elif facts.result.nothing_compared:
        lines += sentence_lines(f"{glyphs.bad} {facts.result.nothing_compared[0]}", "bad", cells, glyphs)
    elif facts.result.conclusion and facts.result.truth is None:
        lines += sentence_lines(facts.result.conclusion, "bad" if facts.result.n_failed else "good", cells, glyphs)
    elif facts.warning:
        lines += sentence_lines(f"warning: {facts.warning}", "warn", cells, glyphs)
    return lines


def _truth(facts: RunFacts, cells: int, glyphs: Glyphs) -> list[Line]:
    """What the truths of all layers come to."""
    found = facts.result.truth
    if found is None:
        return []
    role = "warn" if found.acceptable is None else "good" if found.acceptable else "bad"
    return sentence_lines(found.text, role, cells, glyphs)


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


def _standing(state: ErrorsState, cells: int, glyphs: Glyphs) -> Line:
    """How far it is, and what came of it; the tolerance where there is room for it."""
    facts = state.facts
    failed, passed, _ = state.counts()
    line: Line = [(_progress_text(facts, len(state.table)), "")]
    line += [
        ("   ", ""),
        (f"{failed} {glyphs.bad}", "bad" if failed else ""),
        (f" {passed} {glyphs.good}", ""),
    ]
    if facts.missing:
        line.append((f"   {facts.missing} not compared", "warn"))
    line += _canary(facts)
    if state.locating:
        line.append((f"   {state.locating}", "dim"))
    tolerance: Line = [("   tolerance ", "dim"), (facts.tolerance, "")] if facts.tolerance else []
    return merge([*line, *tolerance] if width([*line, *tolerance]) <= cells else line)


def _progress_text(facts: RunFacts, rows: int) -> str:
    words = {"queued": "waiting for a slot", "waiting": "waiting for an answer", "": "opening"}
    if facts.state == "running":
        building = f": {shown(facts.text, 60)}" if facts.unit == BUILDING else ""
        return f"{facts.done} of {facts.total or '?'} {facts.unit or 'tensors'}{building}"
    return words.get(facts.state, f"{facts.state}: {rows} rows")


def _canary(facts: RunFacts) -> Line:
    canary = facts.result.canary
    if canary is None:
        return []
    if canary.ok:
        return [("   canary ", "dim"), ("ok", "good")]
    return [("   canary ", "dim"), ("moved " + sig(canary.moved), "bad")]


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
