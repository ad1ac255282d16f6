"""Two graphs side by side as rows, and what differs in one row in full."""

from typing import TYPE_CHECKING

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.preview import changes
from layerwise._tool.tui.presenters.surgery_status import ROLES
from layerwise._tool.tui.presenters.tensors import tensor_type
from layerwise._tool.tui.presenters.text import Line, fit, spread, wrap_runs
from layerwise._tool.tui.state.changes import Gap, Pair, Sides

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

OP = 13


def heading(sides: Sides, cells: int, glyphs: Glyphs) -> list[Line]:
    """What differs in numbers, and the names of the sides over their columns."""
    half = (cells - 5) // 2
    counts = [(sides.count("-"), "only left"), (sides.count("+"), "only right"), (sides.count("~"), "changed")]
    told = ", ".join(f"{count:,} {word}" for count, word in counts if count) or "no node differs"
    left, right = (fit(shown(name), half, glyphs.ellipsis) for name in sides.names)
    return [
        spread([(f" {told}", "strong")], [(f"{sides.count(' '):,} equal ", "dim")], cells),
        [(f"  {left} {glyphs.separator} {right}", "head")],
    ]


def side_row(sides: Sides, row: Pair | Gap, cells: int, glyphs: Glyphs) -> Line:
    """`~ op name type │ op name type`, or how many equal nodes are left out."""
    if isinstance(row, Gap):
        return [(f"  {glyphs.ellipsis} {row.count:,} equal nodes  (enter shows them)", "dim")]
    half = (cells - 5) // 2
    left = _node(sides.left, row.left, half, glyphs)
    right = _node(sides.right, row.right, half, glyphs)
    return [(f"{row.sign} {left} {glyphs.separator} {right}", ROLES.get(row.sign, ""))]


def _node(graph: "GraphIndex", node: int, cells: int, glyphs: Glyphs) -> str:
    if node < 0:
        return " " * cells
    outputs = [tensor for tensor in graph.node_outputs(node) if tensor >= 0]
    kind = tensor_type(graph, outputs[0], glyphs) if outputs else ""
    kind_cells = 16 if cells >= 50 else 0
    name = graph.node_name(node) or (graph.tensor_name(outputs[0]) if outputs else "")
    text = f"{fit(graph.node_op(node), OP, glyphs.ellipsis)} "
    text += fit(name, cells - OP - 1 - (kind_cells + 1 if kind_cells else 0), glyphs.ellipsis)
    return f"{text} {fit(kind, kind_cells, glyphs.ellipsis)}" if kind_cells else text


def pair_lines(sides: Sides, row: Pair | Gap, cells: int, glyphs: Glyphs) -> list[Line]:
    """The row under the cursor in words."""
    if isinstance(row, Gap):
        return [[(f"{row.count:,} nodes that are equal on both sides", "dim")]]
    if row.sign == " ":
        return [[("equal on both sides", "dim")]]
    if row.sign == "~":
        lines: list[Line] = []
        for text in changes(sides.left, row.left, sides.right, row.right):
            lines += wrap_runs([("~ ", "warn"), (text, "")], cells, 2)
        return lines
    graph, node = (sides.left, row.left) if row.sign == "-" else (sides.right, row.right)
    word = "only left: " if row.sign == "-" else "only right: "
    reads = ", ".join(_names(graph, graph.node_inputs(node)))
    makes = ", ".join(_names(graph, graph.node_outputs(node)))
    attributes = ", ".join(f"{name}={text}" for name, text in graph.attributes(node))
    text = f"{shown(graph.node_op(node), 60)} {shown(graph.node_name(node), 120)}  reads {reads}  makes {makes}"
    line: Line = [(word, ROLES[row.sign]), (f"{text}  {attributes}", "")]
    return wrap_runs(line, cells, 2)


def _names(graph: "GraphIndex", tensors: list[int]) -> list[str]:
    return [shown(graph.tensor_name(tensor), 80) for tensor in tensors if tensor >= 0]
