"""The history of edits as rows: a tree that grows downwards."""

import time
from dataclasses import dataclass

from layerwise._tool.tui.presenters.glyphs import Glyphs
from layerwise._tool.tui.presenters.text import Line, fit
from layerwise._tool.tui.state.surgery import Step, SurgeryState


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


def branch_row(branch: Branch, state: SurgeryState, cells: int, glyphs: Glyphs) -> Line:
    """`●  3  delete /layer.0/Relu      12:04:51  here, saved as x.onnx`."""
    step = branch.step
    box = glyphs.box
    rail = f"{box[1]} " * branch.depth
    rail = f"{rail[:-2]}{box[9]}{box[0]}" if branch.starts else rail
    dot = glyphs.mark if branch.on_path else glyphs.partial_mark
    notes = [word for word, true in (("here", step.id == state.head), ("saved", step.id == state.saved != 0)) if true]
    clock = time.strftime("%d %b %H:%M", time.localtime(step.time)) if step.time else ""
    right = f" {'  '.join(notes):<12} {clock:>12} "
    text = f"{step.id:>3}  {step.text}" if step.id else "     the file as it is"
    room = max(8, cells - len(rail) - 2 - len(right))
    role = "accent" if step.id == state.head else "" if branch.on_path else "dim"
    return [(f"{rail}{dot} ", "accent" if branch.on_path else "dim"), (fit(text, room, glyphs.ellipsis, "start"), role),
            (right, "dim")]  # fmt: skip
