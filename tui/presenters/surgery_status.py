"""The line below the edited graph: what is marked, and how far it is from the file."""

from backends.text import shown
from tui.presenters.text import Line, spread
from tui.state.surgery import SurgeryState


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


def edited_text(state: SurgeryState) -> str:
    """How the head differs from the file, in a few words."""
    if not state.edits:
        return "as the file"
    where = f"written to {shown(state.saved_as.name, 40)}" if state.saved_as else "written"
    return f"{state.edits} edit{'s' * (state.edits > 1)}, {'not written' if state.unsaved else where}"
