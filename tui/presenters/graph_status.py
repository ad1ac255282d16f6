"""Filter count and marks of the Graph screen as text."""

from typing import TYPE_CHECKING

from tui.presenters.bars import size_text
from tui.presenters.text import Line, spread

if TYPE_CHECKING:
    from tui.state.graph import NodeRows
    from tui.state.marks import MarkCost


def count_line(rows: "NodeRows") -> Line:
    """`96 of 368` while a filter is on, also when all rows are shown again."""
    if rows.index is None or rows.matches is None:
        return []
    return [(f"{len(rows.matches):,} of {rows.index.n_nodes:,}", "strong" if rows.narrowed else "dim")]


def status_line(
    marks: int, cost: "MarkCost", in_range: int | None, progress: str, unmarked: str, cells: int
) -> Line:
    """How much is marked and what it weighs per run; the open range; the progress of indexing. unmarked: what a run
    compares now.
    """
    left: Line = [(" ", "")]
    if progress:
        left.append((f"{progress}  ", "accent"))
    if marks:
        at_least = "at least " if cost.open_ended else ""
        left.append((f"{marks:,} marked, {at_least}{size_text(cost.nbytes)} an iteration", "mark"))
    elif not progress:
        left.append((f"nothing marked: {unmarked}", "dim"))
    right: Line = [] if in_range is None else [(f"range of {in_range:,}: space marks, v ends ", "accent")]
    return spread(left, right, cells)
