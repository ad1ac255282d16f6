"""The Debug screen around its list: which search and how far, the rows, one in full."""

import math
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len

from layerwise._tool.backends.text import counted, shown
from layerwise._tool.debugtools.checks.invariants.spec import RelationRow
from layerwise._tool.debugtools.search.lens.rows import EffectRow
from layerwise._tool.debugtools.search.rows import CandidateRow, Numbers, VerdictRow
from layerwise._tool.tui.presenters.band import band_line, legend, pointer_line
from layerwise._tool.tui.presenters.compare_text import BACKENDS
from layerwise._tool.tui.presenters.effects import effect_band, effect_fields, effect_heading, effect_line
from layerwise._tool.tui.presenters.invariants import HEADING, relation_line, relation_lines
from layerwise._tool.tui.presenters.names import Names, beside
from layerwise._tool.tui.presenters.numbers import clock_text, sig, span_text
from layerwise._tool.tui.presenters.text import Glyphs, Line, clip, fit, merge, some, wrap_runs
from layerwise._tool.tui.presenters.verdicts import DIAGNOSES
from layerwise._tool.tui.state.debug_rows import Shown, ShownStep, ShownSuspect
from layerwise._tool.tui.state.debugging import DebugState

_STATE_ROLES = {"failed": "bad", "lost": "bad", "waiting": "warn", "done": "good"}


def head_lines(
    debug: DebugState, sides: Sequence[str], cells: int, glyphs: Glyphs, now: float, *, tall: bool = True,
    here: int | None = None,
) -> list[Line]:  # fmt: skip
    """now: unix seconds. tall: there is room for what the band's signs mean. here: the node at the cursor."""
    other: Line = [(f"of {shown(debug.other, 40)}   ", "warn")] if debug.other else []
    name: Line = [(f"{debug.search}  ", "strong"), *other, (f"job {debug.job}   ", "dim"), *_standing(debug, now)]
    about = {"invariants": _held, "lens": _measured_alone}.get(debug.search)
    lines = [name, about(debug) if about else _sides(sides, cells, glyphs)]
    if debug.search == "lens":
        effects = (row for row in debug.rows if isinstance(row, EffectRow))
        lines += [line for line in [effect_band(effects, debug.in_fp32, here, cells, glyphs)] if line]
    if debug.band:
        lines += _band(debug, cells, glyphs)
        lines += [legend(debug.search, glyphs)] if tall else []
    return [clip(line, cells) for line in lines]


def _standing(debug: DebugState, now: float) -> Line:
    role = _STATE_ROLES.get(debug.state, "")
    if debug.state == "waiting":
        since = f", waiting for you since {clock_text(debug.asked_at, now)}" if debug.asked_at else ", waiting for you"
        return [(_question(debug), "strong"), (since, role)]
    if debug.live:
        return [(debug.state, "dim"), (_progress(debug), "")]
    seconds, checks = (debug.result.seconds, debug.result.checks) if debug.result else (None, 0)
    span = f" in {span_text(seconds)}" if seconds is not None else ""
    count = f"   {counted(checks, 'check')}" if checks else ""
    return [(debug.state or "opening", role), (span + count, "")]


def _question(debug: DebugState) -> str:
    if debug.search == "triage":
        return f"step {len(debug.rows) + 1}"
    left = max(0.0, debug.total - debug.done)
    return f"question {debug.answered + 1}" + (f" of about {debug.answered + left:.0f}" if left else "")


def _progress(debug: DebugState) -> str:
    if debug.counted or not debug.done:
        return f"   {debug.counted}" if debug.counted else ""
    total = f" of about {max(debug.judged, debug.total):,.0f}" if debug.total else ""
    text = f"   {debug.judged:,}{total} checks"
    left = debug.seconds_left
    return text + (f", about {span_text(left)} left" if left is not None and left >= 1 else "")


def _held(debug: DebugState) -> Line:
    """What is checked."""
    runner = debug.params.get("runner") or {}
    kind = BACKENDS.get(str(runner.get("kind")), "onnxruntime")
    return [(shown(Path(str(debug.params.get("model") or "")).name, 60), "strong"), (f" on {kind}, ", "dim"),
            ("its runs held against each other", "")]  # fmt: skip


def _measured_alone(debug: DebugState) -> Line:
    """Which model a lens measures, in what."""
    model = debug.compare.model if debug.compare is not None else ""
    form = shown(str((debug.params.get("rounding") or {}).get("to", "int8")), 20)
    name: Line = [(shown(Path(str(model or "")).name, 60), "strong"), (f" in {form}   ", "dim")]
    if not debug.rows:
        return [*name, ("node by node, against itself in FP32", "")]
    error, cost = debug.predicted()
    told = "not finite" if error == math.inf else f"{error:.3g}"
    counts = f"{len(debug.in_fp32)} of {len(debug.rows)} in FP32, "
    return [*name, (counts, ""), (f"predicted error {told}", "strong"), (f", cost {cost:.0%}", "dim"),
            (f", {debug.proved}" if debug.proved else "", "strong")]  # fmt: skip


def _sides(sides: Sequence[str], cells: int, glyphs: Glyphs) -> Line:
    """`suspect A   reference B`, the longer name cut."""
    if not sides:
        return [("no two sides: ", "dim"), ("a command or you alone judge", "")]
    words, rooms = ("suspect ", "   reference "), list[int]()
    left = cells - sum(map(len, words))
    for number, name in enumerate(sides[:2]):
        others = sum(len(other) for other in sides[number + 1 : 2])
        rooms.append(max(8, min(len(shown(name)), max(left // 2, left - others) if number == 0 else left)))
        left -= rooms[-1]
    texts = beside(sides[:2], rooms, glyphs.ellipsis)
    return [run for word, text in zip(words, texts, strict=False) for run in ((word, "dim"), (text, "strong"))]


def _band(debug: DebugState, cells: int, glyphs: Glyphs) -> list[Line]:
    total = sum(count for _, count in debug.band)
    at, node = debug.position, debug.candidate or CandidateRow()
    text = _node_text(at, node.op, node.node)
    if at is None and debug.found and debug.found[0].nodes:
        found = debug.found[0].nodes[0]
        at, text = found.i, _node_text(found.i, found.op, found.node)
    text = text if at is not None else ""
    return [band_line(debug.band, cells, glyphs), pointer_line(at, total, cells, text, glyphs.ellipsis)]


def _node_text(i: int | None, op: str | None, name: str | None) -> str:
    return f"#{i} {shown(op or '', 30)} {shown(name or '', 60)}".strip()


_HEADINGS = {
    "triage": f"{'step':<24} {'answer':<8} {'':<8} what was found",
    "invariants": HEADING,
}
_NODE = 24
_VERDICTS = f"{'n':>4} {'verdict':<8} {'nodes':>7} {'at':>7}  {'by':<11} {'s':>6}  node, measured"


def heading(search: str, cells: int) -> Line:
    """Column names of the list below."""
    if search == "lens":
        return [(_whole_words(effect_heading(cells), cells), "head")]
    if search == "locate":
        titles = "".join(f" {title:>8}" for title in ("local", "accum", "ampl")[: _numbers(cells)])
        return [(_whole_words(f"{'#':>6} {'op':<14}{titles}  diagnosis       node", cells), "head")]
    return [(_whole_words(_HEADINGS.get(search, _VERDICTS), cells), "head")]


def _whole_words(names: str, cells: int) -> str:
    """Column names as far as there is room for them."""
    return names if len(names) <= cells else names[: cells + 1].rpartition(" ")[0].rstrip()


def row_line(
    row: Shown | None, cells: int, names: Names, glyphs: Glyphs, *, kept: bool = False, gain: float | None = None
) -> Line:
    """One row of the list. kept: of a lens, the node stays in FP32; gain: by how much the error falls if it does."""
    if isinstance(row, ShownSuspect):
        return clip(_suspect(row, cells, names), cells)
    if isinstance(row, ShownStep):
        return clip(_step(row, cells, glyphs), cells)
    if isinstance(row, RelationRow):
        return clip(relation_line(row, cells, glyphs), cells)
    if isinstance(row, EffectRow):
        return clip(effect_line(row, cells, names, kept=kept, gain=gain), cells)
    return clip(_verdict(row, cells, names, glyphs), cells) if row is not None else []


def _verdict(row: VerdictRow, cells: int, names: Names, glyphs: Glyphs) -> Line:
    role = {"good": "good", "bad": "bad"}.get(row.verdict, "warn")
    glyph = {"good": glyphs.good, "bad": glyphs.bad}.get(row.verdict, "?")
    at = f"#{row.i}" if row.i is not None else ""
    nodes = "" if row.nodes is None else row.nodes
    numbers = f" {nodes:>7} {at:>7}  {shown(row.by, 11):<11} {row.seconds:>6.2f}  "
    parts = [part for part in (shown(row.note, 200), *measured_parts(row.measured, named=False)) if part]
    room = max(0, cells - 13 - len(numbers))
    wanted = cell_len("  ".join(parts))
    name = names.text(row.node, min(room, max(_NODE, room - wanted - 2))).rstrip() if row.node else ""
    rest = numbers + fit(whole_parts([name, *parts] if name else parts, room), room, glyphs.ellipsis, keep="start")
    if row.undone:
        return [(f"{row.n:>4} {glyph} {'undone':<6}{rest}", "dim")]
    return merge([(f"{row.n:>4} ", ""), (f"{glyph} {row.verdict:<6}", role), (rest, "")])


def _suspect(row: ShownSuspect, cells: int, names: Names) -> Line:
    place = "" if row.i is None else row.i
    numbers = (row.local, row.accumulated, row.amplification)[: _numbers(cells)]
    head = f"{place:>6} {names.text(row.op, 14, 'op')}" + "".join(f" {sig(number):>8}" for number in numbers) + "  "
    name = names.text(row.node, max(0, cells - len(head) - 16))
    return merge([(head, ""), (f"{shown(row.diagnosis, 15):<16}", "bad"), (name, "")])


def _numbers(cells: int) -> int:
    """How many of a suspect's three numbers there is room for."""
    return 3 if cells >= 90 else 2 if cells >= 70 else 0


def whole_words(text: str, cells: int, ellipsis: str) -> str:
    """`text` in exactly so many cells, cut between words."""
    text = shown(text)
    kept = fit(text, cells, ellipsis, keep="start")
    if cell_len(text) <= cells or " " not in kept[:-1]:
        return kept
    return fit(f"{kept.rpartition(' ')[0].rstrip(' ;,:')}{ellipsis}", cells)


def _step(row: ShownStep, cells: int, glyphs: Glyphs) -> Line:
    by = "(you)" if row.by == "user" else ""
    answer = shown(row.answer, 8)
    role = {"yes": "warn", "no": "good", "refused": "bad"}.get(answer, "")
    rest = whole_words("; ".join(row.evidence), max(0, cells - 43), glyphs.ellipsis)
    title = fit(shown(row.title, 60), 24, glyphs.ellipsis, keep="start")
    return merge([(f"{title} ", ""), (f"{answer:<8}", role), (f" {by:<8} ", "dim"), (rest, "")])


def whole_parts(parts: Sequence[str], cells: int) -> str:
    """As many of the first parts as there is room for: a number that is cut is another number."""
    fitting = parts[:1]
    for part in parts[1:]:
        if cell_len("  ".join([*fitting, part])) > cells:
            break
        fitting = [*fitting, part]
    return "  ".join(fitting)


def measured_text(measured: Numbers, *, named: bool = True) -> str:
    """Numbers of a verdict, short; with the tensor's name."""
    return "  ".join(measured_parts(measured, named=named))


def measured_parts(measured: Numbers, *, named: bool = True) -> list[str]:
    """What `measured_text` joins."""
    errors = (("max abs", measured.max_abs), ("max rel", measured.max_rel), ("rel L2", measured.rel_l2))
    parts = [shown(measured.tensor, 60) if named and measured.tensor else ""]
    parts += [f"{word} {value:.3g}" for word, value in errors if value is not None]
    parts.append(f"{counted(measured.over, 'element')} over" if measured.over else "")
    parts.append("" if measured.exit_code is None else f"exit code {measured.exit_code}")
    parts.append(shown(measured.note, 120))
    return [part for part in parts if part]


_MOST = 1000


def row_detail(row: Shown | None, cells: int) -> list[Line]:
    """The row under the cursor, in as many lines as it takes."""
    if isinstance(row, ShownSuspect):
        return _suspect_lines(row, cells)
    if isinstance(row, ShownStep):
        return _step_lines(row, cells)
    if isinstance(row, RelationRow):
        return relation_lines(row, cells)
    if isinstance(row, EffectRow):
        return [line for name, text in effect_fields(row) for line in field_lines(name, text, cells)]
    return _verdict_lines(row, cells) if row is not None else []


def field_lines(name: str, text: str, cells: int, role: str = "") -> list[Line]:
    """`name      text`, none where there is no text."""
    return wrap_runs([(f"{name:<10}", "dim"), (shown(text, _MOST), role)], cells, 10) if text else []


def _suspect_lines(row: ShownSuspect, cells: int) -> list[Line]:
    lines = field_lines("suspect", f"#{row.i} {row.op} {row.node}", cells, "strong")
    meaning = f"  {DIAGNOSES.get(row.diagnosis, '')}"
    lines += wrap_runs([("diagnosis ", "dim"), (shown(row.diagnosis, 20), "bad"), (meaning, "")], cells, 10)
    lines += field_lines("evidence", row.evidence, cells)
    errors = f"local {sig(row.local)} (max abs {sig(row.local_abs)})   accumulated "
    errors += f"{sig(row.accumulated)}   amplification {sig(row.amplification)}   as relative L2"
    lines += field_lines("errors", errors, cells)
    lines += field_lines("outputs", some(row.outputs, 6), cells)
    region = some((f"#{node.i} {node.node}" for node in row.region), 6)
    return [*lines, *(field_lines("region", region, cells) if len(row.region) > 1 else [])]


def _step_lines(row: ShownStep, cells: int) -> list[Line]:
    by = "you" if row.by == "user" else "measured"
    lines = field_lines("step", f"{row.title}: {row.question}", cells, "strong")
    lines += field_lines("answer", f"{row.answer} ({by}, {span_text(row.seconds)})", cells)
    for text in row.evidence:
        lines += field_lines("evidence", text, cells)
    return [*lines, *field_lines("advice", row.advice, cells, "warn")]


def _verdict_lines(row: VerdictRow, cells: int) -> list[Line]:
    text = f"#{row.n} {row.verdict} ({row.by}{', undone' if row.undone else ''})"
    text += f": {counted(row.nodes, 'node')}" if row.nodes is not None else ""
    text += f", #{row.i} {row.op or ''} {row.node or ''}" if row.i is not None else ""
    lines = field_lines("verdict", text, cells) + field_lines("measured", measured_text(row.measured), cells)
    return [*lines, *field_lines("note", row.note, cells)]
