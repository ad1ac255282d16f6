"""One side's graph as groups: a tensor with its views (reshaped, transposed, cast, quantised and back) is one group."""

from collections.abc import Iterator

from msgspec import Struct, field

from layerwise._tool.debugtools.align.fingerprint import Fingerprint, same_values
from layerwise._tool.debugtools.align.graph import AlignNode, normalised
from layerwise._tool.debugtools.align.operators import (
    is_view,
    may_be_view,
    operator_class,
    plain,
    quantises,
    restores,
    rounds,
)
from layerwise._tool.debugtools.align.side_data import SideData

_CUTTING_OFF = "relu"  # the class of the operator
_STEPS = 2 / 255  # more than rounding to 8 bits takes from a tensor, as a part of its largest value
_SHAPE_SIZE = 8  # integers of at most so many elements are taken for shapes and indices


class Group(Struct, eq=False):
    """A tensor and its views.

    members: topological order, the root first: what an operation computes, an input or a weight. node, slot: what makes
    it, None for inputs and weights. place: in topological order. inputs: groups that the node reads, in order, -1 for
    what is unknown. readers: groups that are computed from it, in order.
    """

    number: int
    members: list[str]
    place: int
    node: AlignNode | None = None
    slot: int = 0
    weight: bool = False
    operator: str = ""
    inputs: list[int] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)

    @property
    def root(self) -> str:
        """The tensor that the others are views of."""
        return self.members[0]


class GroupGraph:
    """groups: in topological order. of: tensor -> its group. makers: tensor -> what makes it.

    before, behind: of each group, the groups that it is computed from, and that are computed from it,
    without parameters.
    """

    def __init__(self, data: SideData) -> None:
        self.data, self.prints, self.graph = data, data.prints, data.graph
        self.normalised = normalised(data.graph)
        self.groups: list[Group] = []
        self.of: dict[str, int] = {}
        self.makers: dict[str, AlignNode] = {}
        self.quantised = any(quantises(node.op) for node in data.graph.nodes)
        known = {name for node in data.graph.nodes for name in node.inputs}
        weights = sorted(known & data.graph.weights)
        for name in (*data.graph.inputs, *weights):
            if name and name not in self.of:
                self._new(name, weight=name in data.graph.weights)
        for node in data.graph.nodes:
            self._take(node)
        for group in self.groups:
            for number in set(group.inputs):
                if number >= 0:
                    self.groups[number].readers.append(group.number)
        for group in self.groups:
            group.readers.sort()
        self.prints_of = [self._distinct(group) for group in self.groups]
        self.trivial = [self._is_trivial(group) for group in self.groups]
        self.before = [self._telling(group.inputs) for group in self.groups]
        self.behind = [self._telling(group.readers) for group in self.groups]

    def seen(self, group: Group) -> Iterator[tuple[str, Fingerprint]]:
        """Its members that were seen, with their fingerprints."""
        return ((name, self.prints[name]) for name in group.members if name in self.prints)

    def _telling(self, numbers: list[int]) -> list[int]:
        """Those that are no parameters, each once; -1 for all that is unknown."""
        return list(dict.fromkeys(number for number in numbers if number < 0 or not self.trivial[number]))

    def _new(self, name: str, **fields: object) -> Group:
        group = Group(len(self.groups), [name], len(self.groups))
        for key, value in fields.items():
            setattr(group, key, value)
        self.groups.append(group)
        self.of[name] = group.number
        return group

    def _take(self, node: AlignNode) -> None:
        inputs = [self.of.get(name, -1) for name in node.inputs if name]
        for slot, name in enumerate(node.outputs):
            if not name or name in self.of:
                continue
            self.makers[name] = node
            cuts_off = slot == 0 and self._cuts_off(node)
            if slot == 0 and not cuts_off and self._views(node):
                group = self.groups[self.of[_viewed(node)]]
                group.members.append(name)
                self.of[name] = group.number
                continue
            if plain(node.op) == "constant":
                self._new(name, weight=True)
                continue
            operator = _CUTTING_OFF if cuts_off else operator_class(node.op)
            fields = {"node": node, "slot": slot, "operator": operator, "inputs": inputs}
            self._new(name, **fields)

    def _views(self, node: AlignNode) -> bool:
        """Whether the node's output belongs to the group of what it would be a view of."""
        if _viewed(node) not in self.of:
            return False
        before, after = self.prints.get(_viewed(node)), self.prints.get(node.outputs[0])
        if is_view(node.op):
            return before is None or after is None or before.size == after.size
        if not may_be_view(node.op) or before is None or after is None:
            return False
        return same_values(before, after)

    def _cuts_off(self, node: AlignNode) -> bool:
        """Whether a tensor that is dequantised has lost its negative values to codes that begin at zero: onnxruntime's
        quantisation removes an activation that they make up for.
        """
        maker = self.makers.get(_viewed(node))
        if maker is None or not restores(node.op) or not rounds(maker.op):
            return False
        before, after = self.prints.get(_viewed(maker)), self.prints.get(node.outputs[0])
        if before is None or after is None:
            return False
        (low, _), (least, most) = before.ends, after.ends
        return least >= 0 and -low > _STEPS * most

    def _distinct(self, group: Group) -> list[Fingerprint]:
        """The fingerprints of a group, one for each flat order and kind."""
        if len(group.members) == 1:
            known = self.prints.get(group.root)
            return [] if known is None else [known]
        found: dict[tuple[object, ...], Fingerprint] = {}
        for _, known in self.seen(group):
            rough = tuple(round(float(v), 2) for v in memoryview(known.sketch).cast("f")[:4]) if known.sketch else ()
            found.setdefault((known.kind, rough, known.order), known)
        return list(found.values())

    def _is_trivial(self, group: Group) -> bool:
        """Whether it is a parameter rather than data: a scalar, a shape, what was never seen and no operation makes."""
        prints = self.prints_of[group.number]
        if not prints:
            return group.node is None and not group.weight and group.root not in self.graph.inputs
        small = all(p.size <= 1 or (p.kind != "float" and p.size <= _SHAPE_SIZE) for p in prints)
        return small and group.root not in self.graph.inputs and group.root not in self.graph.outputs


def _viewed(node: AlignNode) -> str:
    """The input whose values a view holds; "" where there is none. torch's copy gives its second in the shape of its
    first, as an assignment to a part of a tensor is traced.
    """
    if plain(node.op) in ("copy", "copy_") and len(node.inputs) > 1:
        return node.inputs[1]
    return node.inputs[0] if node.inputs else ""
