"""The edited graph as text: signs before what is new, changed or going, what is marked, how far it is from the file."""

from collections.abc import Mapping
from typing import Any

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.text import Line, plain, spread
from layerwise._tool.tui.state.surgery import SurgeryState

_MOST, _WIDE = 3, 100
SIGN = 2
ROLES = {"-": "bad", "+": "good", "~": "warn"}


def signed_row(sign: str, row: Line) -> Line:
    """`row` with its sign in front; a row that differs is one run of one colour."""
    if sign == " ":
        return [("  ", ""), *row]
    return [(f"{sign} {plain(row)}", ROLES[sign])]


def edited_line(state: SurgeryState, cells: int, in_range: int | None) -> Line:
    """`3 marked: keys act on these            2 edits, not written  state 5`."""
    if not state.opened:
        return [(" ", ""), (state.opening or "reading the model's structure", "dim")]
    marks = len(state.session.marks)
    left: Line = [(" ", "")]
    if in_range is not None:
        left.append((f"range of {in_range:,}: space marks, v ends", "accent"))
    elif marks:
        left.append((f"{marks:,} marked: keys act on all of them, - clears", "mark"))
    else:
        left.append(("keys act on the row under the cursor", "dim"))
    return spread(left, [(f"{edited_text(state)} ", "warn" if state.unsaved else "dim")], cells)


def effect_text(answer: Mapping[str, Any]) -> str:
    """Whether the outputs moved, and by how much."""
    if answer["unmoved"]:
        return f"unmoved: all {len(answer['outputs'])} outputs are equal to the file's, bit for bit"
    if answer.get("nothing") and not (answer["gone"] or answer["new"]):
        return "cannot be told: nothing was compared, no output has an element"
    moved = [row for row in answer["outputs"] if not row["equal"]]
    texts = [f"{shown(row['name'], 60)} {_moved(row)}" for row in moved[:_MOST]]
    if len(moved) > _MOST:
        texts.append(f"{len(moved) - _MOST} more")
    for word, names in (("no longer there", answer["gone"]), ("new", answer["new"])):
        if names:
            texts.append(f"{word}: {', '.join(shown(name, 60) for name in names[:_MOST])}")
    return f"moved: {'; '.join(texts)}"


def misfit_text(edit: Any, reason: str) -> str:
    """An edit that does not fit, and why."""
    return f"{edit.describe()}: {shown(reason, 200)}"


def _moved(row: Mapping[str, Any]) -> str:
    if row["largest"] is None:
        return row["note"] or "cannot be told"
    return f"max abs {row['largest']:.1e}, max rel {row['relative']:.1e}"


def edited_text(state: SurgeryState) -> str:
    """How the head differs from the file, in a few words."""
    if not state.edits:
        return "as the file"
    where = f"written to {shown(state.saved_as.name, 40)}" if state.saved_as else "written"
    return f"{state.edits} edit{'s' * (state.edits > 1)}, {where if not state.unsaved else 'not written'}"


def title_text(state: SurgeryState, cells: int) -> str:
    """As `edited_text`, with how many nodes there are now if there is room."""
    nodes = f"{state.overlay.meta['n_nodes']:,} nodes after " if state.overlay and cells >= _WIDE else ""
    return f"{nodes}{edited_text(state)}"
