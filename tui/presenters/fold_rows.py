"""Equal blocks of nodes as one row of the graph's list."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.graph_rows import Columns, Overlay, error_cell
from layerwise._tool.tui.presenters.text import Line, fit

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.tui.state.folding import Head

_NAMES, _OPS, _WIDE = 64, 4, 30
_ENDS = "/._:"


def fold_row(
    index: "GraphIndex", nodes: Sequence[int], head: "Head", at: Columns, overlay: Overlay, glyphs: Glyphs
) -> Line:
    """`#  ×8  layer.0 … 7  49 nodes each  enter opens  worst error`. nodes: all that it stands for."""
    many = head.number < 0
    what = f"{glyphs.times}{head.count}" if many else f"  {head.number + 1}"
    name = fit(f"{'' if many else '  '}{_place(index, nodes, head, glyphs)}", at.name, glyphs.ellipsis)
    size = f"{head.size} nodes{' each' if many else ''}"
    if at.output:
        name = f"{name} {fit(size, at.output, glyphs.ellipsis, 'start')}"
    enter = f"enter {'folds' if head.opened else 'opens'}"
    kind = fit(enter if at.output else f"{size}, {enter}" if at.type >= _WIDE else size, at.type, glyphs.ellipsis)
    line: Line = [(f"{nodes[0]:>{at.number}} ", "dim"), (f"{fit(what, 15)}{name} ", "strong"), (kind, "dim")]
    if not at.error:
        return line
    found = [overlay.errors[node] for node in nodes if node in overlay.errors]
    worst = max(found, key=lambda error: (error.passed is False, error.max_abs), default=None)
    return [*line, error_cell(worst, at.error)]


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
