"""Rows of modules as styled text: in the layer error table, with what its layers come to, and in the graph's list."""

from statistics import median

from layerwise._tool.surgery.origin.origin import TOP
from layerwise._tool.tui.presenters.errors_page import DIAGNOSIS_CELLS, HEADINGS, PLACE_CELLS, number_text
from layerwise._tool.tui.presenters.graph_rows import Columns, error_cell
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.numbers import sig
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, merge
from layerwise._tool.tui.presenters.verdicts import verdict_glyph, word_of
from layerwise._tool.tui.state.errors_page import FOUND, WRONG, ErrorsState
from layerwise._tool.tui.state.module_tree import ModuleHead
from layerwise._tool.tui.state.session import NodeError

NUMBER, COUNT, OP = 8, 7, 14
NO_MODULE = "(no module)"


def module_name(head: ModuleHead, cells: int, names: Names, glyphs: Glyphs) -> str:
    """`▸ layer.0`, further in the deeper it lies, in `cells` cells."""
    arrow = glyphs.here_left if not head.opened else "v" if glyphs.ellipsis == "~" else "▾"
    name = NO_MODULE if head.path is None else ".".join(head.shown) or TOP
    before = f"{'  ' * min(head.depth, cells // 6)}{arrow} "
    return before + names.text(name, cells - len(before), "module")


def tree_heading(state: ErrorsState, cells: int) -> Line:
    """The columns of the tree: what lies in a module, and the smallest, middle and largest error of its layers."""
    metric = HEADINGS[state.metric]
    text = fit(f"  {'#':>{PLACE_CELLS}} module or tensor: {metric}", _name_cells(cells) + PLACE_CELLS + 3)
    text += f"{'layers':>{COUNT}}" + "".join(f"{name:>{NUMBER}}" for name in ("min", "median", "max"))
    return [(fit(f"{text} verdict", cells, keep="start"), "head")]


def tree_row(state: ErrorsState, line: int, cells: int, names: Names, glyphs: Glyphs) -> Line:
    """A module with what its layers come to, or a layer in it, `cells` wide."""
    head = state.head(line)
    return (
        _layer(state, line, cells, names, glyphs) if head is None else _module(state, line, head, cells, names, glyphs)
    )


def _module(
    state: ErrorsState, line: int, head: ModuleHead, cells: int, names: Names, glyphs: Glyphs
) -> Line:  # fmt: skip
    found = state.rollup(line)
    role = "bad" if found.severity == FOUND else "warn" if found.severity == WRONG else ""
    glyph = glyphs.bad if found.failed else glyphs.good if found.passed == found.rows else " "
    name = module_name(head, _name_cells(cells), names, glyphs)
    numbers = "".join(f"{number_text(value):>{NUMBER}}" for value in (found.low, found.middle, found.high))
    verdict = f"{found.failed} failed" if found.failed else "ok" if found.passed == found.rows else "-"
    return merge([
        (f"{glyph} ", role), (f"{' ' * PLACE_CELLS} ", ""), (name, "strong"), (f"{found.rows:>{COUNT}}", "dim"),
        (f"{numbers} ", ""), (fit(verdict, DIAGNOSIS_CELLS, glyphs.ellipsis), role),
    ])  # fmt: skip


def _layer(state: ErrorsState, line: int, cells: int, names: Names, glyphs: Glyphs) -> Line:
    table, place = state.table, state.place(line)
    word, role = word_of(table, place)
    glyph = verdict_glyph(table, place, glyphs)
    codes, ops = table.labels("op")
    depth = state.tree.depth_at(line) if state.tree else 0
    room = _name_cells(cells) + COUNT + 2 * NUMBER
    indent = min(2 * depth, room // 3)
    op = names.text(ops[int(codes[place])], min(OP, room // 3), "op")
    name = f"{' ' * indent}{op} {names.text(table.tensors[place], room - indent - min(OP, room // 3) - 1, 'tensor')}"
    value = number_text(float(table.numbers(state.metric)[place]))
    text = f"{table.numbers('i')[place]:>{PLACE_CELLS}.0f} {name}{value:>{NUMBER}} "
    return merge([(f"{glyph} ", role), (text, ""), (fit(word, DIAGNOSIS_CELLS, glyphs.ellipsis), role)])


def _name_cells(cells: int) -> int:
    return max(8, cells - 2 - PLACE_CELLS - 1 - COUNT - 3 * NUMBER - 1 - DIAGNOSIS_CELLS)


def graph_module_row(
    head: ModuleHead, first: int, errors: list[NodeError], at: Columns, cells: int, names: Names, glyphs: Glyphs
) -> Line:  # fmt: skip
    """`#  ▸ layer.0  49 nodes  min median  max abs`. first: its first node. errors: of its nodes that have one."""
    worst = max(errors, key=lambda error: (error.passed is False, error.max_abs), default=None)
    values = sorted(error.max_abs for error in errors)
    low, middle = (sig(values[0]), sig(median(values))) if values else ("", "")
    size = f" {head.count} node{'s' * (head.count != 1)}"
    room = max(8, cells - at.number - 1 - len(size) - 1 - at.type - at.error)
    text = module_name(head, room, names, glyphs)
    figures = fit(f"{low:>{NUMBER - 1}} {middle:>{NUMBER - 1}}", at.type, glyphs.ellipsis)
    line: Line = [(f"{first:>{at.number}} ", "dim"), (text, "strong"), (f"{size} {figures}", "dim")]
    return [*line, error_cell(worst, at.error, glyphs)] if at.error else line
