"""The graph's list as text: a node as a row, equal blocks of nodes as one row, how many are found, what is marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import sig, tensor_type
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, spread, wrap_runs
from layerwise._tool.tui.presenters.verdicts import error_word, passed_glyph
from layerwise._tool.tui.state.session import NodeError

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.tui.state.folding import Head
    from layerwise._tool.tui.state.graph import NodeRows
    from layerwise._tool.tui.state.mark_cost import MarkCost

OP = 13
ERROR = 11
_NAMES, _OPS, _WIDE = 64, 4, 30
_LEAST = 10
"""Cells of a name: fewer tell no two apart."""
_ENDS = "/._:"


@dataclass(frozen=True)
class Columns:
    """Cells of each column; 0 leaves a column out. module: in place of the output where modules are noted."""

    number: int
    name: int
    output: int
    module: int
    type: int
    error: int


def columns(cells: int, n_nodes: int, with_errors: bool, modules: bool = False) -> Columns:
    """Share `cells` among the columns: numbers, errors and types first, names get the rest.

    What would leave a name too few cells is left out, types before errors: nothing is cut at the end of a row.
    """
    number = max(3, len(str(max(0, n_nodes - 1))))
    room = cells - number - 1 - OP - 2 - 1
    error = ERROR if with_errors and room - ERROR >= _LEAST else 0
    type_ = 16 if cells < 70 else 22
    type_ = type_ if room - error - type_ >= _LEAST else 0
    rest = max(0, room - error - type_)
    second = rest * (3 if modules else 2) // 5 if cells >= 100 else 0
    output, module = (0, second) if modules else (second, 0)
    return Columns(number, rest - second - bool(second), output, module, type_, error)


def header(at: Columns, summed: bool = False) -> Line:
    """The columns' names. summed: some rows sum up the errors of nodes."""
    text = f"{'#':>{at.number}} {'op':<{OP}}  {'name':<{at.name}}"
    text += f" {'output':<{at.output}}" if at.output else ""
    text += f" {'module':<{at.module}}" if at.module else ""
    text += f" {('type; min median' if summed and at.error else 'type')[: at.type]:<{at.type}}"
    return [(text + (f"{'max-abs':>{at.error - 2}}  " if at.error else ""), "head")]


class GraphMarks(Protocol):
    """What lies over the graph: marked tensors, and errors by node. A Session is one."""

    marks: set[str]
    errors: dict[int, NodeError]


def node_row(
    index: "GraphIndex", node: int, at: Columns, overlay: GraphMarks, names: Names, glyphs: Glyphs, depth: int = 0
) -> Line:
    """`#  op  ● name  output  type  error`. Neighbouring cells share a role: every run costs bytes.

    depth: how many modules' rows it stands below.
    """
    outputs = [tensor for tensor in index.node_outputs(node) if tensor >= 0]
    made = [index.tensor_name(tensor) for tensor in outputs]
    name = index.node_name(node) or (made[0] if made else "")
    mark = mark_glyph(made, overlay.marks, glyphs)
    indent = "  " * min(depth + bool(index.node_scope(node)), at.name // 6)
    text = indent + names.text(name, at.name - len(indent), "name")
    if at.output:
        text += " " + names.text(made[0] if made else "", at.output, "output")
    if at.module:
        modules = index.modules()
        text += " " + names.text(modules.text(node) if modules is not None else "", at.module, "module")
    kind = fit(tensor_type(index, outputs[0], glyphs) if outputs else "", at.type, glyphs.ellipsis)
    op = names.text(index.node_op(node), OP, "op")
    line: Line = [(f"{node:>{at.number}} ", "dim"), (op, ""), (mark, "mark" if mark.strip() else ""), (text + " ", ""),
                  (kind, "dim")]  # fmt: skip
    return [*line, error_cell(overlay.errors.get(node), at.error, glyphs)] if at.error else line


def mark_glyph(names: list[str], marks: set[str], glyphs: Glyphs) -> str:
    """Two cells: all outputs marked, some, or none."""
    marked = sum(name in marks for name in names)
    if not marked:
        return "  "
    return (glyphs.mark if marked == len(names) else glyphs.partial_mark) + " "


def error_cell(error: NodeError | None, cells: int, glyphs: Glyphs) -> tuple[str, str]:
    """The worst error and the sign of its verdict, as the layer table writes them."""
    if error is None:
        return " " * cells, ""
    text = f"{sig(error.max_abs)} {passed_glyph(error.passed, glyphs)}"
    return f"{text:>{cells}}", error_word(error)[1]


def fold_row(
    index: "GraphIndex",
    nodes: Sequence[int],
    head: "Head",
    at: Columns,
    overlay: GraphMarks,
    names: Names,
    glyphs: Glyphs,
) -> Line:
    """`#  ×8  layer.0 … 7  49 nodes each  enter opens  worst error`. nodes: all that it stands for."""
    many = head.number < 0
    what = f"{glyphs.times}{head.count}" if many else f"  {head.number + 1}"
    indent = "" if many else "  "
    size = f"{head.size} nodes{' each' if many else ''}"
    beside = f" {size}" if not at.type and len(indent) + len(size) + _LEAST < at.name else ""
    name = indent + names.text(_place(index, nodes, head, glyphs), at.name - len(indent) - len(beside), "name") + beside
    if at.output:
        name = f"{name} {fit(size, at.output, glyphs.ellipsis, 'start')}"
    enter = f"enter {'folds' if head.opened else 'opens'}"
    kind = fit(enter if at.output else f"{size}, {enter}" if at.type >= _WIDE else size, at.type, glyphs.ellipsis)
    line: Line = [(f"{nodes[0]:>{at.number}} ", "dim"), (f"{fit(what, 15)}{name} ", "strong"), (kind, "dim")]
    if not at.error:
        return line
    found = [overlay.errors[node] for node in nodes if node in overlay.errors]
    worst = max(found, key=lambda error: (error.passed is False, error.max_abs), default=None)
    return [*line, error_cell(worst, at.error, glyphs)]


def _place(index: "GraphIndex", nodes: Sequence[int], head: "Head", glyphs: Glyphs) -> str:
    first = block_name(index, nodes[: head.size])
    last = block_name(index, nodes[-head.size :])
    if head.count == 1 or not (first and last):
        return first or _ops(index, nodes[: head.size], glyphs)
    shared = _shared([first, last])
    return f"{first} {glyphs.ellipsis} {last[max(map(shared.rfind, _ENDS)) + 1 :]}"


def block_name(index: "GraphIndex", nodes: Sequence[int]) -> str:
    """What the names of a block's nodes begin with, up to a separator; empty if nothing."""
    some = [*nodes[:: -(-len(nodes) // _NAMES)], nodes[-1]]
    shared = _shared([index.node_name(node) for node in some])
    return shared[: max(shared.rfind(end) for end in _ENDS) + 1].rstrip(_ENDS)


def _shared(names: Sequence[str]) -> str:
    """What all names begin with: the first and the last of them in order tell."""
    low, high = min(names), max(names)
    same = next((i for i, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
    return low[:same]


def _ops(index: "GraphIndex", nodes: Sequence[int], glyphs: Glyphs) -> str:
    ops = " ".join(index.node_op(node) for node in nodes[:_OPS])
    return ops + f" {glyphs.ellipsis}" * (len(nodes) > _OPS)


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
