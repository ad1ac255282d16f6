"""A node drawn with its parents above and its children below."""

from typing import TYPE_CHECKING

from rich.cells import cell_len

from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.text import Line, fit

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex

UP, DOWN, LEFT, RIGHT = 1, 2, 4, 8
_JOINTS = {
    LEFT | RIGHT: 0, UP | DOWN: 1, UP: 1, DOWN: 1, DOWN | RIGHT: 2, DOWN | LEFT: 3, UP | RIGHT: 4, UP | LEFT: 5,
    DOWN | LEFT | RIGHT: 6, UP | LEFT | RIGHT: 7, UP | DOWN | LEFT | RIGHT: 8, UP | DOWN | RIGHT: 9,
    UP | DOWN | LEFT: 10,
}  # fmt: skip
LABEL = 26
MOST = 40
GAP = 2


def neighbourhood(index: "GraphIndex", node: int, cells: int, glyphs: Glyphs) -> list[Line]:
    """Parents, lines, the node, lines, children; what does not fit is counted (`+3`)."""
    above, below = index.parents(node), index.children(node)
    tops = [label(index, parent, glyphs) for parent in above[:MOST]] + _graph_inputs(index, node, glyphs)
    bottoms = [label(index, child, glyphs) for child in below[:MOST]] + _graph_outputs(index, node, glyphs)
    centre = cells // 2
    name = f"{glyphs.here_left} {label(index, node, glyphs)} {glyphs.here_right}"
    lines: list[Line] = []
    if tops:
        text, places = place(tops, cells, centre, len(above[MOST:]))
        lines += [[(text, "")], [(joints(places, centre, UP, glyphs), "dim")]]
    lines.append([(" " * max(0, centre - cell_len(name) // 2), ""), (name, "accent")])
    if bottoms:
        text, places = place(bottoms, cells, centre, len(below[MOST:]))
        lines += [[(joints(places, centre, DOWN, glyphs), "dim")], [(text, "")]]
    return lines


def label(index: "GraphIndex", node: int, glyphs: Glyphs) -> str:
    op = fit(index.node_op(node), LABEL - 8, glyphs.ellipsis, "start").rstrip()
    return f"{op} #{node}"


def _graph_inputs(index: "GraphIndex", node: int, glyphs: Glyphs) -> list[str]:
    inputs = [tensor for tensor in index.node_inputs(node) if tensor >= 0 and index.tensor_kind(tensor) == "input"]
    return [f"input {_short(index.tensor_name(tensor), glyphs)}" for tensor in dict.fromkeys(inputs)]


def _graph_outputs(index: "GraphIndex", node: int, glyphs: Glyphs) -> list[str]:
    outputs = [tensor for tensor in index.node_outputs(node) if tensor >= 0 and index.is_output(tensor)]
    return [f"output {_short(index.tensor_name(tensor), glyphs)}" for tensor in outputs]


def _short(name: str, glyphs: Glyphs) -> str:
    return fit(name, LABEL - 8, glyphs.ellipsis).rstrip()


def place(labels: list[str], cells: int, centre: int, hidden: int = 0) -> tuple[str, list[int]]:
    """Labels side by side around `centre` in `cells`; their text, and the column of each one's middle.

    What does not fit is counted in a last label, together with `hidden` ones. Where a label is almost above the
    centre, all move so that it stands there: the line needs no jog.
    """
    shown_labels = _that_fit(labels, cells, hidden)
    start = max(0, (cells - _width(shown_labels)) // 2)
    middles, at = [], start
    for name in shown_labels:
        middles.append(at + cell_len(name) // 2)
        at += cell_len(name) + GAP
    jog = min((centre - middle for middle in middles), key=abs)
    shift = jog if abs(jog) <= 2 and start + jog >= 0 else 0
    return " " * (start + shift) + (" " * GAP).join(shown_labels), [middle + shift for middle in middles]


def _that_fit(labels: list[str], cells: int, hidden: int) -> list[str]:
    room, count = cells - len(f"+{len(labels) + hidden}"), 0
    for name in labels:
        room -= cell_len(name) + GAP
        if room < 0:
            break
        count += 1
    if not hidden and (count == len(labels) or _width(labels) <= cells):
        return labels
    count = max(1, count)
    rest = len(labels) - count + hidden
    return [*labels[:count], f"+{rest}"] if rest else labels


def _width(labels: list[str]) -> int:
    return sum(cell_len(label) + GAP for label in labels) - GAP


def joints(places: list[int], centre: int, side: int, glyphs: Glyphs) -> str:
    """The line that joins `places` on `side` (UP: labels above) with the node's `centre` on the other."""
    other = DOWN if side == UP else UP
    arms = dict.fromkeys(range(min(*places, centre), max(*places, centre) + 1), LEFT | RIGHT)
    first, last = min(arms), max(arms)
    arms[first] &= ~LEFT
    arms[last] &= ~RIGHT
    for column in places:
        arms[column] |= side
    arms[centre] |= other
    drawn = (glyphs.box[_JOINTS[arms[column]]] for column in range(first, last + 1))
    return " " * first + "".join(drawn)
