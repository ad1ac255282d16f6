"""The difference between two states of a graph."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from layerwise._tool.surgery.graph.overlay import Overlay
from layerwise._tool.surgery.model.versions import callers, changed_functions


@dataclass(frozen=True)
class Delta:
    """Nodes by number, ascending; tensors by name. changed: nodes in both that differ.

    types: tensors with a known type or shape in both that differs: (name, before, after), each (dtype, shape).
    weights: bytes before and after.
    """

    removed: list[int]
    added: list[int]
    changed: list[int]
    inputs: tuple[list[str], list[str]]
    outputs: tuple[list[str], list[str]]
    values: list[str]
    weights: tuple[int, int]
    types: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Return whether nothing differs that a run could notice."""
        ends = self.inputs[0] == self.inputs[1] and self.outputs[0] == self.outputs[1]
        return ends and not (self.removed or self.added or self.changed or self.values)


def delta(before: Overlay, after: Overlay) -> Delta:
    """Compare two states of the same model. Takes time proportional to their difference."""
    nodes = before.own.keys() | after.own.keys() | (before.gone ^ after.gone)
    removed = sorted(node for node in nodes if before.has(node) and not after.has(node))
    added = sorted(node for node in nodes if after.has(node) and not before.has(node))
    both = (node for node in nodes if before.has(node) and after.has(node))
    changed = sorted(node for node in both if _differ(before, after, node))
    return Delta(
        removed, added, changed,
        inputs=(before.state.input_names, after.state.input_names),
        outputs=(before.state.output_names, after.state.output_names),
        values=_values(before, after),
        weights=(before.meta["weight_bytes"], after.meta["weight_bytes"]),
    )  # fmt: skip


def _callers(before: Overlay, after: Overlay) -> list[int]:
    """Return nodes that call a function that differs."""
    names = changed_functions(before.state.functions, after.state.functions)
    return [after.number(node) for node in callers(after.state, names)]


def _differ(before: Overlay, after: Overlay, node: int) -> bool:
    one, other = before.proto(node), after.proto(node)
    return one is not other and one != other


def _values(before: Overlay, after: Overlay) -> list[str]:
    """Return weights with different values, or read in both and stored in only one."""
    one, other = before.state.initializers, after.state.initializers
    if one is other:
        return []
    return [name for name, tensor in other.items() if name in one and one[name] is not tensor and one[name] != tensor]


def _readers(after: Overlay, names: Iterable[str]) -> list[int]:
    readers = after.state.lookups.readers
    return [after.number(node) for name in names for node in readers.get(name, ())]


def affected(before: Overlay, after: Overlay, found: Delta) -> list[str]:
    """Return outputs of both states that are now computed differently. Takes time proportional to what follows."""
    readers = _readers(after, found.values)
    reached = after.reach([*found.added, *found.changed, *readers, *_callers(before, after)])
    names = set(before.state.output_names)
    makers = {name: after.producer(after.find_tensor(name)) for name in after.state.output_names if name in names}
    return [name for name, maker in makers.items() if maker >= 0 and reached[maker]]
