"""A check of invariants as styled text: its axes, a line for each relation, one relation in full."""

from collections.abc import Sequence

from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.invariants.sentences import line as said
from layerwise._tool.debugtools.checks.invariants.sentences import place
from layerwise._tool.debugtools.checks.invariants.spec import AxisRow, RelationRow
from layerwise._tool.tui.presenters.numbers import sig
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, merge, wrap_runs

HEADING = f"{'relation':<16} {'status':<13} {'rel-L2':>9} {'rounding':>9}  first breaks at"
_ROLES = {"obeyed": "good", "broken": "bad", "not checked": "warn"}
_AXES = 4


def relation_line(row: RelationRow, cells: int, glyphs: Glyphs) -> Line:
    """One relation."""
    glyph = {"obeyed": glyphs.good, "broken": glyphs.bad}.get(row.status, "?")
    numbers = f"{sig(row.rel):>9} {sig(row.bound):>9}" if row.output else f"{'':>19}"
    where = "" if row.where is None else f"#{row.where.position} {row.where.op} {row.where.node or row.where.tensor}"
    text = where or ("" if row.status == "obeyed" else row.text)
    role = _ROLES.get(row.status, "")
    head = f"{fit(shown(row.relation, 40), 16)} "
    rest = fit(f" {numbers}  {shown(text, 400)}", max(0, cells - len(head) - 13), glyphs.ellipsis, keep="start")
    return merge([(head, ""), (f"{glyph} {row.status:<11}", role), (rest, "")])


def relation_lines(row: RelationRow, cells: int) -> list[Line]:
    """One relation in as many lines as it takes."""
    fields = [("relation", f"{row.relation}: {said(row.relation)}", "strong")]
    if row.output and row.status != "not checked":
        at = "" if row.row is None else f" in row {row.row}"
        measured = f"{shown(row.output, 120)}: relative L2 {sig(row.rel)}{at}, rounding explains {sig(row.bound)}"
        fields.append(("measured", measured, ""))
    if row.where is not None:
        alone = f"#{row.where.position} {place(row.where)}; alone it differs by {sig(row.where.rel)}"
        fields.append(("breaks at", alone, "bad"))
    fields.append(("note", row.text, ""))
    return [found for name, text, role in fields if text for found in field(name, text, cells, role)]


def axes_lines(axes: Sequence[AxisRow], cells: int) -> list[Line]:
    """Which axis of each input is the batch."""
    inputs = [axis for axis in axes if not axis.output]
    told = [f"{shown(axis.name, 60)} {_axis(axis)}" for axis in inputs[:_AXES]]
    more = f" and {len(inputs) - _AXES} more" if len(inputs) > _AXES else ""
    return field("batch", ", ".join(told) + more, cells, "") if told else []


def _axis(axis: AxisRow) -> str:
    shape = "\u00d7".join(map(str, axis.shape))
    return f"{shape} (no rows)" if axis.axis is None else f"{shape} (axis {axis.axis})"


def field(name: str, text: str, cells: int, role: str) -> list[Line]:
    """`name      text`."""
    return wrap_runs([(f"{name:<10}", "dim"), (shown(text, 1000), role)], cells, 10)
