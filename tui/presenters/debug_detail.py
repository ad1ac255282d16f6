"""Everything that is known of one row of the Debug screen's list."""

from collections.abc import Iterable

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.rows import VerdictRow
from layerwise._tool.tui.presenters.debug_rows import measured_text
from layerwise._tool.tui.presenters.error_detail import DIAGNOSES
from layerwise._tool.tui.presenters.numbers import sig, span_text
from layerwise._tool.tui.presenters.text import Line, wrap_runs
from layerwise._tool.tui.state.debugging import Shown, StepRow, SuspectRow

_MOST = 1000


def row_detail(row: Shown | None, cells: int) -> list[Line]:
    """The row under the cursor, in as many lines as it takes."""
    if isinstance(row, SuspectRow):
        return _suspect(row, cells)
    if isinstance(row, StepRow):
        return _step(row, cells)
    return _verdict(row, cells) if row is not None else []


def _field(name: str, text: str, cells: int, role: str = "") -> list[Line]:
    return wrap_runs([(f"{name:<10}", "dim"), (shown(text, _MOST), role)], cells, 10) if text else []


def _suspect(row: SuspectRow, cells: int) -> list[Line]:
    lines = _field("suspect", f"#{row.i} {row.op} {row.node}", cells, "strong")
    meaning = f"  {DIAGNOSES.get(row.diagnosis, '')}"
    lines += wrap_runs([("diagnosis ", "dim"), (shown(row.diagnosis, 20), "bad"), (meaning, "")], cells, 10)
    lines += _field("evidence", row.evidence, cells)
    errors = f"local {sig(row.local)} (max abs {sig(row.local_abs)})   accumulated "
    errors += f"{sig(row.accumulated)}   amplification {sig(row.amplification)}   as relative L2"
    lines += _field("errors", errors, cells)
    lines += _field("outputs", _names(row.outputs), cells)
    region = _names(f"#{node.i} {node.node}" for node in row.region)
    return [*lines, *(_field("region", region, cells) if len(row.region) > 1 else [])]


def _step(row: StepRow, cells: int) -> list[Line]:
    by = "you" if row.by == "user" else "measured"
    lines = _field("step", f"{row.title}: {row.question}", cells, "strong")
    lines += _field("answer", f"{row.answer} ({by}, {span_text(row.seconds)})", cells)
    for text in row.evidence:
        lines += _field("evidence", text, cells)
    return [*lines, *_field("advice", row.advice, cells, "warn")]


def _verdict(row: VerdictRow, cells: int) -> list[Line]:
    text = f"#{row.n} {row.verdict} ({row.by}{', undone' if row.undone else ''})"
    text += f": {row.nodes} nodes" if row.nodes is not None else ""
    text += f", #{row.i} {row.op or ''} {row.node or ''}" if row.i is not None else ""
    lines = _field("verdict", text, cells) + _field("measured", measured_text(row.measured), cells)
    return [*lines, *_field("note", row.note, cells)]


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")
