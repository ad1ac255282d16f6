"""Filter count and marks of the Graph screen as text."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.bars import size_text
from layerwise._tool.tui.presenters.text import Line, spread, wrap_runs

if TYPE_CHECKING:
    from layerwise._tool.tui.state.graph import NodeRows
    from layerwise._tool.tui.state.marks import MarkCost


def count_line(rows: "NodeRows") -> Line:
    """`96 of 368` while a filter is on, also when all rows are shown again."""
    if rows.index is None or rows.matches is None:
        return []
    return [(f"{len(rows.matches):,} of {rows.index.n_nodes:,}", "strong" if rows.narrowed else "dim")]


def problem_lines(problem: str, cells: int) -> list[Line]:
    """Why there is no graph, in place of its nodes; none where nothing is wrong."""
    if not problem or cells <= 0:
        return []
    return wrap_runs([("No graph: ", "bad"), (shown(problem), "")], cells)


def status_line(marks: int, cost: "MarkCost", in_range: int | None, progress: str, instead: str, cells: int) -> Line:
    """How much is marked and what it weighs per run; the open range; the progress of indexing. instead: what a run
    compares where it does not go by what is marked.
    """
    left: Line = [(" ", "")]
    if progress:
        left.append((f"{progress}  ", "accent"))
    if marks:
        at_least = "at least " if cost.open_ended else ""
        left.append((f"{marks:,} marked, {at_least}{size_text(cost.nbytes)} an iteration", "mark"))
        left.append((f"; {instead}" if instead else "", "dim"))
    elif not progress:
        left.append((f"nothing marked: {instead}", "dim"))
    right: Line = [] if in_range is None else [(f"range of {in_range:,}: space marks, v ends ", "accent")]
    return spread(left, right, cells)
