"""The rows of the Debug screen (verdicts of a search, suspects of a locate job, steps of a triage), and one in full."""

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.rows import Numbers, VerdictRow
from layerwise._tool.tui.presenters.error_detail import DIAGNOSES
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.numbers import sig, span_text
from layerwise._tool.tui.presenters.text import Line, clip, fit, merge, some, wrap_runs
from layerwise._tool.tui.state.debugging import Shown, StepRow, SuspectRow

_HEADINGS = {
    "locate": f"{'#':>6} {'op':<14} {'local':>9} {'accum':>9} {'ampl':>7}  diagnosis       node",
    "triage": f"{'step':<24} {'answer':<8} {'':<8} what was found",
}
_VERDICTS = f"{'n':>4} {'verdict':<8} {'nodes':>7} {'at':>7}  {'by':<11} {'s':>6}  node, measured"


def heading(search: str, cells: int) -> Line:
    """Column names of the list below."""
    return [(fit(_HEADINGS.get(search, _VERDICTS), cells), "head")]


def row_line(row: Shown | None, cells: int, glyphs: Glyphs) -> Line:
    """One row of the list."""
    if isinstance(row, SuspectRow):
        return clip(_suspect(row, cells, glyphs), cells)
    if isinstance(row, StepRow):
        return clip(_step(row, cells, glyphs), cells)
    return clip(_verdict(row, cells, glyphs), cells) if row is not None else []


def _verdict(row: VerdictRow, cells: int, glyphs: Glyphs) -> Line:
    role = {"good": "good", "bad": "bad"}.get(row.verdict, "warn")
    glyph = {"good": glyphs.good, "bad": glyphs.bad}.get(row.verdict, "?")
    at = f"#{row.i}" if row.i is not None else ""
    nodes = "" if row.nodes is None else row.nodes
    numbers = f" {nodes:>7} {at:>7}  {shown(row.by, 11):<11} {row.seconds:>6.2f}  "
    parts = (shown(row.node or "", 80), measured_text(row.measured, named=False), shown(row.note, 200))
    rest = fit(numbers + "  ".join(part for part in parts if part), max(0, cells - 13), glyphs.ellipsis, keep="start")
    if row.undone:
        return [(f"{row.n:>4} {glyph} {'undone':<6}{rest}", "dim")]
    return merge([(f"{row.n:>4} ", ""), (f"{glyph} {row.verdict:<6}", role), (rest, "")])


def _suspect(row: SuspectRow, cells: int, glyphs: Glyphs) -> Line:
    errors = f"{sig(row.local):>9} {sig(row.accumulated):>9} {sig(row.amplification):>7}  "
    place = "" if row.i is None else row.i
    head = f"{place:>6} {fit(shown(row.op, 60), 14)} {errors}"
    tail = fit(shown(row.node, 1000), max(0, cells - len(head) - 16), glyphs.ellipsis, keep="end")
    return merge([(head, ""), (f"{shown(row.diagnosis, 15):<16}", "bad"), (tail, "")])


def _step(row: StepRow, cells: int, glyphs: Glyphs) -> Line:
    by = "(you)" if row.by == "user" else ""
    answer = shown(row.answer, 8)
    role = {"yes": "warn", "no": "good"}.get(answer, "")
    rest = fit("; ".join(row.evidence), max(0, cells - 43), glyphs.ellipsis, keep="start")
    title = fit(shown(row.title, 60), 24, glyphs.ellipsis, keep="start")
    return merge([(f"{title} ", ""), (f"{answer:<8}", role), (f" {by:<8} ", "dim"), (rest, "")])


def measured_text(measured: Numbers, *, named: bool = True) -> str:
    """Numbers of a verdict, short; with the tensor's name."""
    errors = (("max abs", measured.max_abs), ("max rel", measured.max_rel), ("rel L2", measured.rel_l2))
    parts = [shown(measured.tensor, 60) if named and measured.tensor else ""]
    parts += [f"{word} {value:.3g}" for word, value in errors if value is not None]
    parts.append(f"{measured.over:,} elements over" if measured.over else "")
    parts.append("" if measured.exit_code is None else f"exit code {measured.exit_code}")
    parts.append(shown(measured.note, 120))
    return "  ".join(part for part in parts if part)


_MOST = 1000


def row_detail(row: Shown | None, cells: int) -> list[Line]:
    """The row under the cursor, in as many lines as it takes."""
    if isinstance(row, SuspectRow):
        return _suspect_lines(row, cells)
    if isinstance(row, StepRow):
        return _step_lines(row, cells)
    return _verdict_lines(row, cells) if row is not None else []


def field_lines(name: str, text: str, cells: int, role: str = "") -> list[Line]:
    """`name      text`, none where there is no text."""
    return wrap_runs([(f"{name:<10}", "dim"), (shown(text, _MOST), role)], cells, 10) if text else []


def _suspect_lines(row: SuspectRow, cells: int) -> list[Line]:
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


def _step_lines(row: StepRow, cells: int) -> list[Line]:
    by = "you" if row.by == "user" else "measured"
    lines = field_lines("step", f"{row.title}: {row.question}", cells, "strong")
    lines += field_lines("answer", f"{row.answer} ({by}, {span_text(row.seconds)})", cells)
    for text in row.evidence:
        lines += field_lines("evidence", text, cells)
    return [*lines, *field_lines("advice", row.advice, cells, "warn")]


def _verdict_lines(row: VerdictRow, cells: int) -> list[Line]:
    text = f"#{row.n} {row.verdict} ({row.by}{', undone' if row.undone else ''})"
    text += f": {row.nodes} nodes" if row.nodes is not None else ""
    text += f", #{row.i} {row.op or ''} {row.node or ''}" if row.i is not None else ""
    lines = field_lines("verdict", text, cells) + field_lines("measured", measured_text(row.measured), cells)
    return [*lines, *field_lines("note", row.note, cells)]
