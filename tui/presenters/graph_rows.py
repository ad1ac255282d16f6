"""A node as a row of the graph's list."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.tensors import tensor_type
from layerwise._tool.tui.presenters.text import Line, fit
from layerwise._tool.tui.state.session import NodeError

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

OP = 13
ERROR = 11


@dataclass(frozen=True)
class Columns:
    """Cells of each column; 0 leaves a column out."""

    number: int
    name: int
    output: int
    type: int
    error: int


def columns(cells: int, n_nodes: int, with_errors: bool) -> Columns:
    """Share `cells` among the columns: numbers and types first, names get the rest."""
    number = max(3, len(str(max(0, n_nodes - 1))))
    error = ERROR if with_errors else 0
    type_ = 16 if cells < 70 else 22
    rest = max(8, cells - number - 1 - OP - 2 - type_ - 1 - error)
    output = rest * 2 // 5 if cells >= 100 else 0
    return Columns(number, rest - output - bool(output), output, type_, error)


def header(at: Columns) -> Line:
    text = f"{'#':>{at.number}} {'op':<{OP}}  {'name':<{at.name}}"
    text += f" {'output':<{at.output}}" if at.output else ""
    text += f" {'type':<{at.type}}"
    return [(text + (f"{'max abs':>{at.error}}" if at.error else ""), "head")]


class Overlay(Protocol):
    """What lies over the graph: marked tensors, and errors by node. A Session is one."""

    marks: set[str]
    errors: dict[int, NodeError]


def node_row(index: "GraphIndex", node: int, at: Columns, overlay: Overlay, glyphs: Glyphs) -> Line:
    """`#  op  ● name  output  type  error`. Neighbouring cells share a role: every run costs bytes."""
    outputs = [tensor for tensor in index.node_outputs(node) if tensor >= 0]
    names = [index.tensor_name(tensor) for tensor in outputs]
    name = index.node_name(node) or (names[0] if names else "")
    mark = mark_glyph(names, overlay.marks, glyphs)
    indent = "  " if index.node_scope(node) else ""
    text = fit(indent + name, at.name, glyphs.ellipsis)
    if at.output:
        text += " " + fit(names[0] if names else "", at.output, glyphs.ellipsis)
    kind = fit(tensor_type(index, outputs[0], glyphs) if outputs else "", at.type, glyphs.ellipsis)
    op = fit(index.node_op(node), OP, glyphs.ellipsis)
    line: Line = [(f"{node:>{at.number}} ", "dim"), (op, ""), (mark, "mark" if mark.strip() else ""), (text + " ", ""),
                  (kind, "dim")]  # fmt: skip
    return [*line, error_cell(overlay.errors.get(node), at.error)] if at.error else line


def mark_glyph(names: list[str], marks: set[str], glyphs: Glyphs) -> str:
    """Two cells: all outputs marked, some, or none."""
    marked = sum(name in marks for name in names)
    if not marked:
        return "  "
    return (glyphs.mark if marked == len(names) else glyphs.partial_mark) + " "


def error_cell(error: NodeError | None, cells: int) -> tuple[str, str]:
    """The worst error; `!` marks a failed one, so that colour is not needed."""
    if error is None:
        return " " * cells, ""
    text = f"{error.max_abs:.1e}{'!' if error.passed is False else ' '}"
    return f"{text:>{cells}}", "bad" if error.passed is False else "good" if error.passed else "dim"
