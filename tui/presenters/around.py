"""What surrounds a node, for the third pane: its neighbours, their errors, and its row of the comparison on view.

Mostly one run a line: the pane changes whole at each move of the cursor, and each run costs some 45 bytes.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rich.cells import cell_len

from layerwise._tool.backends.text import Called, in_full
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import index_text, sig
from layerwise._tool.tui.presenters.text import UNICODE, Glyphs, Line, fit, wrap_runs
from layerwise._tool.tui.presenters.verdicts import error_word

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.rows import LayerRow
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.tui.state.errors_page import ErrorsState
    from layerwise._tool.tui.state.session import NodeError


Step = Callable[[int], list[int]]
MOST_CASTS = 4
WORD = 10
VALUE = 12


def around_lines(
    index: "GraphIndex", node: int, compared: "ErrorsState", errors: "Mapping[int, NodeError]", cells: int,
    glyphs: Glyphs,
) -> list[Line]:  # fmt: skip
    """The neighbourhood as a drawing, the errors along it, and what the comparison says of the node."""
    lines = neighbourhood(index, node, cells, glyphs)
    if not errors:
        return [*lines, [], [("errors show here once a comparison has run (R)", "dim")]]
    lines += [[], *_error_path(index, node, errors, glyphs), []]
    found = errors.get(node)
    if found is None:
        return [*lines, [("the comparison has no tensor of this node", "dim")]]
    row = compared.table.row(found.place)
    return [*lines, *_row_lines(row, cells), [], *side_columns(row, compared.facts.runners, cells, glyphs)]


def _error_path(index: "GraphIndex", node: int, errors: "Mapping[int, NodeError]", glyphs: Glyphs) -> list[Line]:
    """A line for the node and for each neighbour that has an error, Casts left out."""
    lines: list[Line] = [[(f"{'':<5}{'node':<{LABEL}} {'max-abs':>9}  verdict", "head")]]
    steps = (("in", index.parents), ("here", lambda node: [node]), ("out", index.children))
    for word, step in steps:
        for other in step(node)[:MOST]:
            found = _through_casts(index, other, step, errors)
            if found in errors:
                name = fit(label(index, found, glyphs), LABEL)
                lines.append(_error(f"{word:<5}{name}", errors[found]))
    return lines if len(lines) > 1 else []


def _through_casts(index: "GraphIndex", node: int, step: "Step", errors: "Mapping[int, NodeError]") -> int:
    """The first node from `node` on that has an error of its own: round trips through a precision are Casts."""
    for _ in range(MOST_CASTS):
        further = step(node)
        if node in errors or index.node_op(node) != "Cast" or len(further) != 1:
            break
        node = further[0]
    return node


def _error(name: str, error: "NodeError") -> Line:
    return [(f"{name} {sig(error.max_abs):>9}  ", ""), error_word(error)]


def _row_lines(row: "LayerRow", cells: int) -> list[Line]:
    facts = (
        ("max-abs", f"{sig(row.max_abs, 4)} at {index_text(row.argmax_abs)}"),
        ("max-rel", f"{sig(row.max_rel, 4)} at {index_text(row.argmax_rel)}"),
        ("rel-L2", f"{sig(row.rel_l2, 4)}  cosine {sig(row.cosine, 4)}  ampl {sig(row.ampl, 3)}"),
        ("over", f"{'-' if row.over is None else row.over} of {row.size} elements, observed {row.mode or '-'}"),
    )
    name = wrap_runs([(f"{'tensor':<{WORD}}{in_full(row.tensor)}", "")], cells, WORD)
    return [*name, *([(f"{word:<{WORD}}{text}", "")] for word, text in facts)]


def side_columns(row: "LayerRow", names: list[str], cells: int, glyphs: Glyphs = UNICODE) -> list[Line]:
    """Statistics of the sides, a column each."""
    sides = row.pair[: len(row.stats)]
    lines: list[Line] = []
    for number, side in enumerate(sides):
        name = names[side] if side < len(names) else f"side {side + 1}"
        lines.append([(f"{number + 1} {fit(name, cells - 2, glyphs.ellipsis)}", "")])
    lines.append([("".ljust(WORD) + "".join(f"{number + 1:>{VALUE}}" for number in range(len(sides))), "head")])
    for key in ("mean", "std", "min", "max"):
        values = "".join(f"{sig(getattr(side, key, None), 3):>{VALUE}}" for side in row.stats)
        lines.append([(f"{key:<{WORD}}{values}", "")])
    for key, counts in (("nan", row.nan), ("inf", row.inf)):
        if any(counts):
            lines.append([(f"{key:<{WORD}}" + "".join(f"{count:>{VALUE}}" for count in counts), "bad")])
    return lines


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
    above, below, names = index.parents(node), index.children(node), Names(glyphs)
    inputs, outputs = names.told(lambda: _graph_ends(index, node, names.inline(LABEL - 8)))
    tops = [*(label(index, parent, glyphs) for parent in above[:MOST]), *inputs]
    bottoms = [*(label(index, child, glyphs) for child in below[:MOST]), *outputs]
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
    """A node in a few cells: `MatMul #12`."""
    op = fit(index.node_op(node), LABEL - 8, glyphs.ellipsis, "start").rstrip()
    return f"{op} #{node}"


def _graph_ends(index: "GraphIndex", node: int, called: Called) -> tuple[list[str], list[str]]:
    """Inputs and outputs of the graph that the node reads and makes."""
    inputs = [tensor for tensor in index.node_inputs(node) if tensor >= 0 and index.tensor_kind(tensor) == "input"]
    outputs = [tensor for tensor in index.node_outputs(node) if tensor >= 0 and index.is_output(tensor)]
    return (
        [f"input {called(index.tensor_name(tensor))}" for tensor in dict.fromkeys(inputs)],
        [f"output {called(index.tensor_name(tensor))}" for tensor in outputs],
    )


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
