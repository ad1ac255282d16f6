"""Surgery as text: signs before what differs, how far the graph is from the file, its history, two graphs as rows."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.text import Called, in_full, shown
from layerwise._tool.tui.presenters.names import TITLE, Names
from layerwise._tool.tui.presenters.numbers import tensor_type
from layerwise._tool.tui.presenters.preview import changes
from layerwise._tool.tui.presenters.text import Glyphs, Line, fit, plain, spread, wrap_runs
from layerwise._tool.tui.state.surgery import Gap, NodesBeside, Sides, Step, SurgeryState

if TYPE_CHECKING:
    from layerwise._tool.surgery.graph import GraphIndex


_MOST, _WIDE, _CELLS = 3, 100, 120
SIGN = 2
ROLES = {"-": "bad", "+": "good", "~": "warn"}


def signed_row(sign: str, row: Line) -> Line:
    """`row` with its sign in front; a row that differs is one run of one colour."""
    if sign == " ":
        return [("  ", ""), *row]
    return [(f"{sign} {plain(row)}", ROLES[sign])]


def edited_line(state: SurgeryState, cells: int, in_range: int | None) -> Line:
    """`3 marked: keys act on these            2 edits, not written  state 5`."""
    if state.session.model is None:
        return []
    if not state.opened:
        return [(" ", ""), (state.opening or "reading the model's structure", "dim")]
    marks = len(state.session.marks)
    left: Line = [(" ", "")]
    if in_range is not None:
        left.append((f"range of {in_range:,}: space marks, v ends", "accent"))
    elif marks and not state.marks_act:
        left.append((f"{marks:,} marked before: keys act on the row under the cursor, and ask", "dim"))
    elif marks:
        left.append((f"{marks:,} marked: keys act on all of them, - clears", "mark"))
    else:
        left.append(("keys act on the row under the cursor", "dim"))
    return spread(left, [(f"{edited_text(state)} ", "warn" if state.unsaved else "dim")], cells)


def effect_text(answer: Mapping[str, Any]) -> str:
    """Whether the outputs moved, and by how much."""
    if answer["unmoved"]:
        return f"unmoved: all {len(answer['outputs'])} outputs are equal to the file's, bit for bit"
    if answer.get("nothing") and not (answer["gone"] or answer["new"]):
        return "cannot be told: nothing was compared, no output has an element"
    moved = [row for row in answer["outputs"] if not row["equal"]]
    texts = [f"{in_full(row['name'])} {_moved(row)}" for row in moved[:_MOST]]
    if len(moved) > _MOST:
        texts.append(f"{len(moved) - _MOST} more")
    for word, names in (("no longer there", answer["gone"]), ("new", answer["new"])):
        if names:
            texts.append(f"{word}: {', '.join(map(in_full, names[:_MOST]))}")
    return f"outputs moved: {'; '.join(texts)}"


def misfit_text(edit: Any, reason: str) -> str:
    """An edit that does not fit, and why."""
    return f"{edit.describe()}: {shown(reason, 200)}"


def _moved(row: Mapping[str, Any]) -> str:
    if row["largest"] is None:
        return row["note"] or "cannot be told"
    return f"max abs {row['largest']:.1e}, max rel {row['relative']:.1e}"


def edited_text(state: SurgeryState) -> str:
    """How the head differs from the file, in a few words."""
    if not state.edits:
        return "as the file"
    where = f"written to {shown(state.saved_as.name, 40)}" if state.saved_as else "written"
    return f"{state.edits} edit{'s' * (state.edits > 1)}, {where if not state.unsaved else 'not written'}"


def title_text(state: SurgeryState, cells: int) -> str:
    """As `edited_text`, with how many nodes there are now if there is room."""
    nodes = f"{state.overlay.meta['n_nodes']:,} nodes after " if state.overlay and cells >= _WIDE else ""
    return f"{nodes}{edited_text(state)}"


@dataclass(frozen=True)
class Branch:
    """A step and where it stands: `depth` branches off the first line. on_path: it leads to the head; starts: it is the
    first of its branch.
    """

    step: Step
    depth: int
    on_path: bool
    starts: bool


def branches(state: SurgeryState) -> list[Branch]:
    """The steps as a tree: a step's first continuation stands right below it, later ones are branches."""
    children: dict[int, list[Step]] = {}
    for step in state.steps:
        if step.id != 0:
            children.setdefault(step.parent, []).append(step)
    path, found = set(state.path()), list[Branch]()
    waiting = [(step, 0, False) for step in state.steps if step.id == 0]
    while waiting:
        step, depth, starts = waiting.pop()
        below = children.get(step.id, [])
        found.append(Branch(step, depth, step.id in path, starts))
        main = next((child for child in below if child.id in path), below[0] if below else None)
        if main is not None:
            waiting.append((main, depth, False))
            waiting += [(child, depth + 1, True) for child in reversed(below) if child is not main]
    return found


def branch_row(branch: Branch, state: SurgeryState, cells: int, names: Names, glyphs: Glyphs) -> Line:
    """`●  3  delete /layer.0/Relu      12:04:51  here, saved as x.onnx`."""
    step = branch.step
    box = glyphs.box
    rail = f"{box[1]} " * branch.depth
    rail = f"{rail[:-2]}{box[9]}{box[0]}" if branch.starts else rail
    dot = glyphs.mark if branch.on_path else glyphs.partial_mark
    notes = [word for word, true in (("here", step.id == state.head), ("saved", step.id == state.saved != 0)) if true]
    clock = time.strftime("%d %b %H:%M", time.localtime(step.time)) if step.time else ""
    right = f" {'  '.join(notes):<{11 if state.saved else 4}} {clock:>12} "
    room = max(8, cells - len(rail) - 2 - len(right) - 5)
    text = f"{step.id or '':>3}  {names.text(step.text if step.id else 'the file as it is', room, TITLE)}"
    role = "accent" if step.id == state.head else "" if branch.on_path else "dim"
    return [(f"{rail}{dot} ", "accent" if branch.on_path else "dim"), (text, role),
            (right, "dim")]  # fmt: skip


OP = 13


def heading(sides: Sides, cells: int, glyphs: Glyphs) -> list[Line]:
    """What differs in numbers, and the names of the sides over their columns."""
    half = (cells - 5) // 2
    counts = [(sides.count("-"), "only left"), (sides.count("+"), "only right"), (sides.count("~"), "changed")]
    told = ", ".join(f"{count:,} {word}" for count, word in counts if count) or "no node differs"
    names = Names(glyphs)
    left, right = names.told(lambda: [names.text(name, half) for name in sides.names])
    return [
        spread([(f" {told}", "strong")], [(f"{sides.count(' '):,} equal ", "dim")], cells),
        [(f"  {left} {glyphs.separator} {right}", "head")],
    ]


def side_row(sides: Sides, row: NodesBeside | Gap, cells: int, names: Names, glyphs: Glyphs) -> Line:
    """`~ op name type │ op name type`, or how many equal nodes are left out."""
    if isinstance(row, Gap):
        return [(f"  {glyphs.ellipsis} {row.count:,} equal nodes  (enter shows them)", "dim")]
    half = (cells - 5) // 2
    left = _node(sides.left, row.left, half, names, glyphs)
    right = _node(sides.right, row.right, half, names, glyphs)
    return [(f"{row.sign} {left} {glyphs.separator} {right}", ROLES.get(row.sign, ""))]


def _node(graph: "GraphIndex", node: int, cells: int, names: Names, glyphs: Glyphs) -> str:
    if node < 0:
        return " " * cells
    outputs = [tensor for tensor in graph.node_outputs(node) if tensor >= 0]
    kind = tensor_type(graph, outputs[0], glyphs) if outputs else ""
    kind_cells = 16 if cells >= 50 else 0
    name = graph.node_name(node) or (graph.tensor_name(outputs[0]) if outputs else "")
    text = f"{names.text(graph.node_op(node), OP, 'op')} "
    text += names.text(name, cells - OP - 1 - (kind_cells + 1 if kind_cells else 0), "name")
    return f"{text} {fit(kind, kind_cells, glyphs.ellipsis)}" if kind_cells else text


def pair_lines(sides: Sides, row: NodesBeside | Gap, cells: int, glyphs: Glyphs) -> list[Line]:
    """The row under the cursor in words."""
    if isinstance(row, Gap):
        return [[(f"{row.count:,} nodes that are equal on both sides", "dim")]]
    if row.sign == " ":
        return [[("equal on both sides", "dim")]]
    names = Names(glyphs)
    called = names.inline(_CELLS)
    return names.told(
        lambda: _changed(sides, row, cells, called) if row.sign == "~" else _alone(sides, row, cells, called)
    )


def _changed(sides: Sides, row: NodesBeside, cells: int, called: Called) -> list[Line]:
    texts = changes(sides.left, row.left, sides.right, row.right, called)
    return [line for text in texts for line in wrap_runs([("~ ", "warn"), (text, "")], cells, 2)]


def _alone(sides: Sides, row: NodesBeside, cells: int, called: Called) -> list[Line]:
    """A node that the other side has not."""
    graph, node = (sides.left, row.left) if row.sign == "-" else (sides.right, row.right)
    word = "only left: " if row.sign == "-" else "only right: "
    reads, makes = (
        ", ".join(called(graph.tensor_name(tensor)) for tensor in tensors if tensor >= 0)
        for tensors in (graph.node_inputs(node), graph.node_outputs(node))
    )
    attributes = ", ".join(f"{name}={text}" for name, text in graph.attributes(node))
    text = f"{shown(graph.node_op(node), 60)} {called(graph.node_name(node))}  reads {reads}  makes {makes}"
    line: Line = [(word, ROLES[row.sign]), (f"{text}  {attributes}", "")]
    return wrap_runs(line, cells, 2)
