"""The layer error table as styled text."""

import math
from dataclasses import dataclass
from functools import lru_cache

from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.origin.origin import dotted
from layerwise._tool.tui.presenters.names import Names, beside
from layerwise._tool.tui.presenters.numbers import sig
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, merge, sentence_lines, sort_sign, width, wrap_runs
from layerwise._tool.tui.presenters.verdicts import BAR_TITLE, DECADES, error_bar, verdict_glyph, word_of
from layerwise._tool.tui.state.error_table import LENS, ErrorTable
from layerwise._tool.tui.state.errors_page import CLEAN, FOUND, NOTHING, OPEN, WRONG, ErrorsState
from layerwise._tool.tui.state.job_rows import RunFacts

TIMES = ("\u00d7", "times")
NUMBER_CELLS = 7
AMPL_CELLS = 7
VERDICT_CELLS = 10
DIAGNOSIS_CELLS = 15
PLACE_CELLS = 5
MODE_CELLS = 9
WIDE = 100
LEAST_NAME, WIDE_NAME = 16, 26
MODULE_ROOM = 30
BUILDING = "build steps"
HEADINGS = {
    "graph": "#", "max_abs": "max-abs", "max_rel": "max-rel", "rel_l2": "rel-L2", "ampl": "ampl",
    "verdict": "verdict", "op": "op", "tensor": "tensor", "local": "local",
    "times": TIMES[0], "effect": "effect", "gain": "gain",
}  # fmt: skip
_SHOWN = ("max_abs", "max_rel", "local", "rel_l2", "times", "ampl", "effect", "gain")
_GIVES_WAY = ("local", "effect", "rel_l2", "times", "gain", "max_abs", "ampl", "mode", "max_rel")
"""Columns that there may be no room for, the last one gives way first."""


@dataclass(frozen=True)
class Columns:
    """Cells of the op, tensor, module, mode, bar and verdict columns; numbers: the keys of those shown.

    module, mode, bar: 0 where they are not shown. local: the error of the whole run is called accumulated.
    """

    op: int
    tensor: int
    module: int
    mode: int
    bar: int
    verdict: int
    numbers: tuple[str, ...]
    local: bool = False

    def title(self, key: str) -> str:
        """The heading of a column of numbers."""
        return "accum" if self.local and key == "rel_l2" else HEADINGS[key]


@lru_cache(64)
def columns(
    cells: int, local: bool, truth: bool = False, modules: bool = False, sort: str = "graph", *, long: bool = False,
    lens: bool = False,
) -> Columns:  # fmt: skip
    """The columns of a list `cells` wide: the verdict is never cut, a name has `LEAST_NAME` cells at least, numbers
    give way. local: local errors are known. truth: so is how far layers are from the truth. modules: the exporter
    noted them. sort: what is sorted by is shown. long: so are long words of verdicts.
    lens: a lens measured the nodes.
    """
    wide = cells >= WIDE
    op, verdict = 14 if wide else 10, DIAGNOSIS_CELLS if local or long else VERDICT_CELLS
    fixed = 2 + PLACE_CELLS + 1 + op + 1 + 1 + verdict
    bar = DECADES if cells - fixed - DECADES - 1 >= LEAST_NAME else 0
    fixed += bar + bool(bar)
    room = cells - fixed - (WIDE_NAME if wide else LEAST_NAME)
    known = {"local": local, "times": truth, "mode": wide, "max_rel": not local or sort == "max_rel"}
    known |= {"effect": lens, "gain": lens}
    taken: dict[str, int] = {}
    for key in (*((sort,) if sort in _SHOWN else ()), *_GIVES_WAY):
        width = 1 + {"mode": MODE_CELLS, "ampl": AMPL_CELLS}.get(key, NUMBER_CELLS)
        if key not in taken and known.get(key, True) and sum(taken.values()) + width <= room:
            taken[key] = width
    tensor = max(8, cells - fixed - sum(taken.values()))
    module = tensor * 3 // 5 if modules and wide and tensor >= MODULE_ROOM else 0
    mode = MODE_CELLS if "mode" in taken else 0
    numbers = tuple(key for key in _SHOWN if key in taken)
    return Columns(op, tensor - module - bool(module), module, mode, bar, verdict, numbers, local)


def table_columns(table: ErrorTable, cells: int, sort: str = "graph") -> Columns:
    """The columns for what a table knows."""
    long = any(len(word) > VERDICT_CELLS for word in table.labels("finding")[1])
    return columns(cells, table.has_local, table.has_truth, table.noted, sort, long=long, lens=bool(table.effects))


def heading(shape: Columns, cells: int, sort: str, reverse: bool, glyphs: Glyphs) -> Line:
    """The column names; the sorted column carries an arrow."""
    arrow = sort_sign(reverse, glyphs)

    def name(key: str) -> str:
        return (shape.title(key) if key in _SHOWN else HEADINGS[key]) + arrow * (key == sort)

    text = f"  {name('graph'):>{PLACE_CELLS}} {fit(name('op'), shape.op)} {fit(name('tensor'), shape.tensor)}"
    text += f" {fit('module', shape.module)}" if shape.module else ""
    text += f" {fit('mode', shape.mode)}" if shape.mode else ""
    text += "".join(f"{name(key):>{NUMBER_CELLS + 1}}" for key in shape.numbers)  # the arrow takes the gap
    text += f" {BAR_TITLE}" if shape.bar else ""
    return [(fit(f"{text} {name('verdict')}", cells, keep="start"), "head")]


def row_line(table: ErrorTable, place: int, shape: Columns, names: Names, glyphs: Glyphs) -> Line:
    """One row of the table: at most four runs, three when it passed."""
    text = f"{table.numbers('i')[place]:>{PLACE_CELLS}.0f} {names.text(_label(table, 'op', place), shape.op, 'op')} "
    text += names.text(table.tensors[place], shape.tensor, "tensor")
    text += f" {names.text(_module(table, place), shape.module, 'module')}" if shape.module else ""
    text += f" {fit(_label(table, 'mode', place), shape.mode, glyphs.ellipsis)}" if shape.mode else ""
    text += "".join(f" {_number(table, key, place):>{NUMBER_CELLS}}" for key in shape.numbers)
    word, role = word_of(table, place)
    glyph = verdict_glyph(table, place, glyphs)
    bar = error_bar(float(table.numbers("rel_l2")[place]), glyph == glyphs.bad, glyphs)
    after: Line = [(" ", ""), bar] if shape.bar else []
    return merge([(f"{glyph} ", role), (text, ""), *after, (f" {fit(word, shape.verdict, glyphs.ellipsis)}", role)])


def _module(table: ErrorTable, place: int) -> str:
    path = table.module(place)
    return "" if path is None else dotted(path)


def number_text(value: float) -> str:
    """A number that need not be known."""
    return "-" if math.isnan(value) else sig(value)


def _number(table: ErrorTable, key: str, place: int) -> str:
    one = table.effects.column(key, [table.tensors[place]])[0] if key in LENS else table.numbers(key)[place]
    value = float(one)
    if key == "gain" and not math.isnan(value):
        return f"{value:.0%}"
    return "-" if math.isnan(value) and key in ("ampl", "local", "times", "effect", "gain") else sig(value)


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
    lines = [_sides(facts, cells, glyphs), *wrap_runs(_standing(state, cells, glyphs), cells)]
    lines += _truth(facts, cells, glyphs)
    if facts.card is not None and len(state.table):
        text = f"{glyphs.bad} {facts.card.get('kind', '')}: {facts.card.get('summary', '')}"
        lines += sentence_lines(text, "bad", cells, glyphs)
    elif facts.result.nothing_compared:
        text = facts.with_sides(facts.result.nothing_compared[0])
        lines += sentence_lines(f"{glyphs.bad} {text}", "bad", cells, glyphs)
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
    left, rooms = cells - len(iteration) - 11 * (len(names) - 1), list[int]()
    for number, name in enumerate(names):
        others = sum(min(len(other), left // len(names)) for other in names[number + 1 :])
        rooms.append(min(len(shown(name)), max(8, left - others)))
        left -= rooms[-1]
    line: Line = []
    for number, text in enumerate(beside(names, rooms, glyphs.ellipsis)):
        line += [("  against  ", "dim")] if number else []
        line.append((text, "strong"))
    return [*line, (iteration, "dim")]


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
        line += [(f"   {facts.missing} not compared", "warn"), (" U", "key")]
    line += _canary(facts)
    if state.locating:
        line.append((f"   {state.locating}", "dim"))
    for more in (_left_out(facts), [("   tolerance ", "dim"), (facts.tolerance, "")] if facts.tolerance else []):
        line += more if width([*line, *more]) <= cells else []
    return merge(line)


def _left_out(facts: RunFacts) -> Line:
    """How many tensors were left out where that is no more than was to be expected, and the key that lists them."""
    others = {item.tensor for item in facts.result.not_compared}
    return [(f"   {len(others):,} left out", "dim"), (" U", "key")] if others and not facts.missing else []


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
