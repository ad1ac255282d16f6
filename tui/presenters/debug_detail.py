"""Everything that is known of one row of the Debug screen's list."""

from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.debug_rows import measured_text
from layerwise._tool.tui.presenters.error_detail import DIAGNOSES
from layerwise._tool.tui.presenters.numbers import sig, span_text
from layerwise._tool.tui.presenters.text import Line, wrap_runs

Row = Mapping[str, Any]
_MOST = 1000


def row_detail(search: str, row: Row, cells: int) -> list[Line]:
    """The row under the cursor, in as many lines as it takes."""
    if not row:
        return []
    if search == "locate":
        return _suspect(row, cells)
    return _step(row, cells) if search == "triage" else _verdict(row, cells)


def _field(name: str, text: str, cells: int, role: str = "") -> list[Line]:
    return wrap_runs([(f"{name:<10}", "dim"), (shown(text, _MOST), role)], cells, 10) if text else []


def _suspect(row: Row, cells: int) -> list[Line]:
    word = str(row.get("diagnosis") or "")
    lines = _field("suspect", f"#{row.get('i')} {row.get('op', '')} {row.get('node', '')}", cells, "strong")
    meaning = f"  {DIAGNOSES.get(word, '')}"
    lines += wrap_runs([("diagnosis ", "dim"), (shown(word, 20), "bad"), (meaning, "")], cells, 10)
    lines += _field("evidence", str(row.get("evidence") or ""), cells)
    errors = f"local {sig(row.get('local'))} (max abs {sig(row.get('local_abs'))})   accumulated "
    errors += f"{sig(row.get('accumulated'))}   amplification {sig(row.get('amplification'))}   as relative L2"
    lines += _field("errors", errors, cells)
    lines += _field("outputs", _names(row.get("outputs")), cells)
    region = [node for node in row.get("region") or [] if isinstance(node, dict)]
    return [*lines, *(_field("region", _names(f"#{n.get('i')} {n.get('node')}" for n in region), cells)
                      if len(region) > 1 else [])]  # fmt: skip


def _step(row: Row, cells: int) -> list[Line]:
    by = "you" if row.get("by") == "user" else "measured"
    lines = _field("step", f"{row.get('title', '')}: {row.get('question', '')}", cells, "strong")
    lines += _field("answer", f"{row.get('answer', '')} ({by}, {span_text(row.get('seconds'))})", cells)
    for text in row.get("evidence") or []:
        lines += _field("evidence", str(text), cells)
    return [*lines, *_field("advice", str(row.get("advice") or ""), cells, "warn")]


def _verdict(row: Row, cells: int) -> list[Line]:
    undone = ", undone" if row.get("undone") else ""
    text = f"#{row.get('n')} {row.get('verdict')} ({row.get('by')}{undone})"
    text += f": {row['nodes']} nodes" if row.get("nodes") is not None else ""
    if row.get("i") is not None:
        text += f", #{row['i']} {row.get('op', '')} {row.get('node', '')}"
    lines = _field("verdict", text, cells)
    lines += _field("measured", measured_text(row.get("measured") or {}), cells)
    return [*lines, *_field("note", str(row.get("note") or ""), cells)]


def _names(names: Any) -> str:
    listed = [str(name) for name in names or []]
    return ", ".join(listed[:6]) + (f" and {len(listed) - 6} more" if len(listed) > 6 else "")
