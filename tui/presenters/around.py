"""What surrounds a node, for the third pane: its neighbours, their errors, and its row of the comparison on view.

Mostly one run a line: the pane changes whole at each move of the cursor, and each run costs some 45 bytes.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.neighbours import MOST, label, neighbourhood
from layerwise._tool.tui.presenters.numbers import index_text, sig
from layerwise._tool.tui.presenters.text import Line, fit

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.rows import LayerRow
    from layerwise._tool.surgery.graph import GraphIndex
    from layerwise._tool.tui.state.errors_page import ErrorsState
    from layerwise._tool.tui.state.session import NodeError

Step = Callable[[int], list[int]]
MOST_CASTS = 4
WORD = 10
LABEL = 26
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
    return [*lines, *_row_lines(row, cells), [], *_side_lines(row, compared.facts.runners, cells, glyphs)]


def _error_path(index: "GraphIndex", node: int, errors: "Mapping[int, NodeError]", glyphs: Glyphs) -> list[Line]:
    """A line for the node and for each neighbour that has an error, Casts left out."""
    lines: list[Line] = [[(f"{'':<5}{'node':<{LABEL}} {'max abs':>9}  verdict", "head")]]
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
    verdict = error.finding or {True: "ok", False: "failed", None: "-"}[error.passed]
    role = "bad" if error.passed is False else ""
    return [(f"{name} {error.max_abs:>9.1e}  ", ""), (verdict, role)]


def _row_lines(row: "LayerRow", cells: int) -> list[Line]:
    facts = (
        ("tensor", shown(row.tensor, max(8, cells - WORD))),
        ("max abs", f"{sig(row.max_abs, 4)} at {index_text(row.argmax_abs)}"),
        ("max rel", f"{sig(row.max_rel, 4)} at {index_text(row.argmax_rel)}"),
        ("rel-L2", f"{sig(row.rel_l2, 4)}  cosine {sig(row.cosine, 4)}  ampl {sig(row.ampl, 3)}"),
        ("over", f"{'-' if row.over is None else row.over} of {row.size} elements, observed {row.mode or '-'}"),
    )
    return [[(f"{word:<{WORD}}{text}", "")] for word, text in facts]


def _side_lines(row: "LayerRow", names: list[str], cells: int, glyphs: Glyphs) -> list[Line]:
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
