"""Which tensors a user marked: names, globs and op types resolved against a model's graph."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.runner import element_of
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.tolerance import near
from layerwise._tool.debugtools.compare.spec import MarkSpec

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_GLOB = frozenset("*?[")


def any_marks(marks: MarkSpec) -> bool:
    """True if anything besides the graph outputs is observed."""
    return marks.everything or bool(marks.names or marks.op_types)


def marked_tensors(marks: MarkSpec, cut: "GraphCut") -> list[str]:
    """Return the marked tensors in topological order, graph outputs among them unless `only` names others.

    UsageError for a name, glob or op type that fits nothing in the model, with near matches.
    """
    made = list(cut.maker)
    chosen = set(made) if marks.everything else _named(marks.names, made) | _of_types(marks.op_types, cut)
    if not (marks.only and (marks.names or marks.op_types)):
        chosen.update(name for name in cut.outputs if name in cut.maker)
    excluded = _named(marks.exclude, made) if marks.exclude else set()
    return [name for name in made if name in chosen and name not in excluded]


def outputs_of_file(marks: MarkSpec, cut: "GraphCut") -> list[str]:
    """The same as outputs of a model that is written: of constants (nodes) only those named or asked for by type."""
    asked = {*cut.outputs, *marks.names}
    of_type = "constant" in map(str.lower, marks.op_types)
    return [
        name for name in marked_tensors(marks, cut)
        if of_type or name in asked or cut.nodes[cut.maker[name]].op_type != "Constant"
    ]  # fmt: skip


def shown_outputs(marks: MarkSpec, outputs: Iterable[str]) -> list[str]:
    """Return the graph outputs that are reported: all, less those excluded, or with `only` those that are named.

    An element of a sequence goes by the sequence's name too.
    """
    kept = list(outputs)
    if marks.only and (marks.names or marks.op_types):
        kept = [name for name in kept if _fits_any(name, marks.names)]
    return [name for name in kept if not excluded(marks, name)]


def excluded(marks: MarkSpec, name: str) -> bool:
    """Whether an output was asked to be left out."""
    return _fits_any(name, marks.exclude)


def idle_exclusions(marks: MarkSpec, names: Iterable[str]) -> list[str]:
    """Return a line per exclusion that leaves none of `names` out, with near matches."""
    known = [part for name in names for part in (name, element_of(name)) if part]
    idle = [pattern for pattern in marks.exclude if not any(_fits(name, pattern) for name in known)]
    return [f"{shown(pattern, 80)!r} is excluded, which is not compared{near(pattern, known)}" for pattern in idle]


def _fits_any(name: str, patterns: Sequence[str]) -> bool:
    return any(_fits(part, pattern) for part in (name, element_of(name)) if part for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or (not _GLOB.isdisjoint(pattern) and fnmatchcase(name, pattern))


def _named(patterns: Iterable[str], names: list[str]) -> set[str]:
    known = set(names)
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = {pattern} & known | {name for name in names if _fits(name, pattern)}
        if not fitting:
            raise UsageError(f"the model makes no tensor {shown(pattern, 120)!r}{near(pattern, names)}")
        chosen |= fitting
    return chosen


def _of_types(op_types: Iterable[str], cut: "GraphCut") -> set[str]:
    chosen: set[str] = set()
    for op_type in op_types:
        nodes = [node for node in cut.nodes if node.op_type.lower() == op_type.lower()]
        fitting = {name for node in nodes for name in node.output if name}
        if not fitting:
            there = {node.op_type for node in cut.nodes}
            raise UsageError(f"the model has no node of type {shown(op_type, 60)!r}{near(op_type, there)}")
        chosen |= fitting
    return chosen
