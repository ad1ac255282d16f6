"""Nodes of two graphs that were matched: which of them changed, and how; bodies of control flow included."""

from collections.abc import Callable, Container, Mapping, Sequence
from operator import attrgetter
from typing import Any

from layerwise._tool.backends.model.records import Node
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import AlignedPair
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.diff.graph_side import GraphSide
from layerwise._tool.debugtools.diff.matching import Matching
from layerwise._tool.debugtools.diff.outcome import Section
from layerwise._tool.debugtools.diff.regions import DiffRegion, pair_weights, parameter_text, region_lines, regions
from layerwise._tool.debugtools.diff.weights import Weights, distance, match_weights, same
from layerwise._tool.surgery.inspect.text import attribute_text
from layerwise._tool.surgery.inspect.view import GraphView
from layerwise._tool.surgery.model.proto import default_of

_LISTED = 8
_FIRST, _SECOND = attrgetter("first"), attrgetter("second")
_COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min", "Sum", "Mean", "And", "Or", "Xor", "Equal"})
Align = Callable[[Matching], object]


class NodeChanges:
    """Collects the differences of nodes over the main graph, its bodies and functions."""

    def __init__(self, align: Align | None = None, given: Sequence[AlignedPair] = ()) -> None:
        """align: pairs what structure leaves alone. given: pairs of tensors of the main graphs that are known."""
        self._align, self._given = align, given
        self.opsets: tuple[Mapping[str, int], Mapping[str, int]] = ({}, {})
        self._apart = {pair.tensor: pair.distance for pair in given if pair.distance is not None}
        self.changed = Section("nodes changed", "nodes_changed")
        self.regions = Section("regions written in another way", "regions")
        self.removed = Section("nodes only in the first", "nodes_only_a")
        self.added = Section("nodes only in the second", "nodes_only_b")
        self.renamed = Section("nodes renamed", "nodes_renamed", cosmetic=True)

    @property
    def sections(self) -> list[Section]:
        """All sections, in the order to show them."""
        return [self.changed, self.regions, self.removed, self.added, self.renamed]

    def compare(
        self,
        a: GraphSide,
        b: GraphSide,
        tensors: Mapping[str, str],
        weights: Weights,
        prefix: str = "",
        equal: Mapping[str, str] | None = None,
    ) -> Matching:
        """Match two graphs whose inputs correspond by `tensors`, and note what differs. equal: of what lies around."""
        matching = Matching(a, b, {**tensors, **weights.tensors}, {**(equal or {}), **weights.equal})
        if not prefix:
            matching.take((pair.tensor, pair.other) for pair in self._given)
        matching.run(self._align)
        found = regions(matching) if self._align or self._given else {}
        for region in found.values():
            pair_weights(matching, region)
        inside = [{i for region in found.values() for i in nodes(region)} for nodes in (_FIRST, _SECOND)]
        parameters = [_read_within(side, inner) for side, inner in ((a, inside[0]), (b, inside[1]))]
        for i, node in enumerate(a.nodes):
            j = matching.forth.get(i)
            if i in found:
                self._region(matching, found[i], prefix)
            elif j is not None:
                self._pair(matching, i, j, prefix)
            elif i not in inside[0] and not _is_there(a, i, {*matching.tensors, *parameters[0]}):
                self.removed.add(prefix + node_text(a, i), node=prefix + a.labels[i], op=node.op)
        known = {name for name, first in matching.equal.items() if first in matching.tensors.values()}
        for j, node in enumerate(b.nodes):
            if j not in matching.back and j not in inside[1] and not _is_there(b, j, known | parameters[1]):
                self.added.add(prefix + node_text(b, j), node=prefix + b.labels[j], op=node.op)
        self._outputs(matching, prefix)
        return matching

    def _region(self, matching: Matching, region: DiffRegion, prefix: str) -> None:
        a, b = matching.a, matching.b
        label, other = a.labels[region.first[-1]], b.labels[region.second[-1]]
        ops = [[operator(side.nodes[i]) for i in part] for side, part in ((a, region.first), (b, region.second))]
        lines = list(region_lines(matching, region))
        ends = [] if prefix else [name for name in a.nodes[region.first[-1]].outputs if name in self._apart]
        lines += [f"values in the map: {self._apart[name]:.3g} apart" for name in ends]
        head = f"{shown(label, 200)} → {shown(other, 200)}: {_listed(ops[0])} → {_listed(ops[1])}"
        text = "\n".join([prefix + head, *(f"    {line}" for line in lines)])
        names = [[prefix + side.labels[i] for i in part] for side, part in ((a, region.first), (b, region.second))]
        self.regions.add(text, node=prefix + label, other=prefix + other, a=ops[0], b=ops[1], nodes=names, lines=lines)

    def _pair(self, matching: Matching, i: int, j: int, prefix: str) -> None:
        a, b = matching.a, matching.b
        x, y = a.nodes[i], b.nodes[j]
        lines = [*_operators(x, y), *_inputs(matching, x, y)]
        if a.signatures[i] != b.signatures[j] or a.has_body(i):
            lines += self._attributes(matching, i, j, prefix)
        if len(x.outputs) != len(y.outputs):
            lines.append(f"outputs: {len(x.outputs)} → {len(y.outputs)}")
        label, other = a.labels[i], b.labels[j]
        name = shown(label, 200) if label == other else f"{shown(label, 200)} → {shown(other, 200)}"
        if lines:
            text = "\n".join([f"{prefix}{name} ({shown(x.op, 80)})", *(f"    {line}" for line in lines)])
            self.changed.add(text, node=prefix + label, other=prefix + other, op=x.op, changes=lines)
        elif label != other:
            self.renamed.add(prefix + name, a=prefix + label, b=prefix + other, op=x.op)

    def _attributes(self, matching: Matching, i: int, j: int, prefix: str) -> list[str]:
        """What attributes differ; bodies are compared as graphs, and their nodes noted for themselves."""
        a, b = matching.a, matching.b
        before, after = dict(a.view.attributes(a.nodes[i])), dict(b.view.attributes(b.nodes[j]))
        lines = []
        for name in dict.fromkeys([*before, *after]):
            x, y = before.get(name), after.get(name)
            if isinstance(x, GraphView) and isinstance(y, GraphView):
                inner, other = graph_side(x), graph_side(y)
                tensors = {**matching.tensors, **dict(zip(inner.inputs, other.inputs, strict=False))}
                weights = match_weights(inner, other)
                place = f"{prefix}{shown(a.labels[i], 80)}/{name}/"
                self.compare(inner, other, tensors, weights, place, matching.equal)
                lines += [f"{shown(name, 80)}: weight {shown(w, 100)} changed" for w in weights.changed]
            elif not same(a.view, x, b.view, y) and not self._by_default(a.nodes[i], b.nodes[j], name, x, y):
                lines.append(f"{shown(name, 80)}: {_text(x)} → {_text(y)}{_apart(a.view, x, b.view, y)}")
        return lines

    def _by_default(self, one: Node, other: Node, name: str, x: Any, y: Any) -> bool:
        """Whether one of two nodes leaves out an attribute that the other gives its default value."""
        if (x is None) == (y is None) or one.op != other.op:
            return False
        node, place, value = (other, 0, y) if x is None else (one, 1, x)
        version = self.opsets[place].get(node.domain, 0)
        return bool(default_of(node.op, node.domain, name, version) == value)

    def _outputs(self, matching: Matching, prefix: str) -> None:
        """Graph outputs that another node makes than the one that corresponds."""
        a, b = matching.a, matching.b
        for x, y in zip(a.outputs, b.outputs, strict=False):
            before, after = a.maker.get(x), b.maker.get(y)
            if before and after and before[0] in matching.forth and not matching.same(x, y):
                labels = a.labels[before[0]], b.labels[after[0]]
                text = (
                    f"{prefix}output {shown(y, 200)}: made by {shown(labels[0], 200)}, now by {shown(labels[1], 200)}"
                )
                self.changed.add(text, node=prefix + labels[0], other=prefix + labels[1], op="", changes=[text])


def _read_within(side: GraphSide, inside: Container[int]) -> set[str]:
    """The parameters that nodes within regions alone read: the regions tell their values."""
    return {name for name in side.parameters if all(i in inside for i in side.read_by.get(name, ()))}


def _is_there(side: GraphSide, number: int, known: Container[str]) -> bool:
    """Whether a node only holds, or hands on, a parameter that the other graph has too."""
    return side.is_parameter(number) and all(name in known for name in side.nodes[number].outputs)


def graph_side(view: GraphView) -> GraphSide:
    """A graph or body with its own inputs and outputs."""
    return GraphSide(view, [v.name for v in view.inputs], [v.name for v in view.outputs])


def node_text(side: GraphSide, number: int) -> str:
    """A node in one line: name, operator, what it reads and makes."""
    node = side.nodes[number]
    reads, makes = (_listed(names) for names in (node.inputs, node.outputs))
    return f"{shown(side.labels[number], 200)} ({shown(operator(node), 80)}): {reads} → {makes}"


def operator(node: Node) -> str:
    """The operator, with its domain if that is not ONNX's."""
    return f"{node.domain}.{node.op}" if node.domain else node.op


def _listed(names: list[str]) -> str:
    text = ", ".join(shown(name, 60) or "-" for name in names[:_LISTED]) or "nothing"
    return f"{text}, … {len(names)} in all" if len(names) > _LISTED else text


def _operators(x: Node, y: Node) -> list[str]:
    before, after = operator(x), operator(y)
    return [] if before == after else [f"operator: {shown(before, 80)} → {shown(after, 80)}"]


def same_inputs(matching: Matching, i: int, j: int) -> bool:
    """Whether two nodes read the same tensors, in an order that makes no difference."""
    return not _inputs(matching, matching.a.nodes[i], matching.b.nodes[j])


def _inputs(matching: Matching, x: Node, y: Node) -> list[str]:
    lines = []
    if x.op in _COMMUTATIVE and _as_sets(matching, x, y):
        return []
    if len(x.inputs) != len(y.inputs):
        lines.append(f"inputs: {len(x.inputs)} → {len(y.inputs)}")
    for slot, (name, other) in enumerate(zip(x.inputs, y.inputs, strict=False)):
        if not matching.same(name, other):
            lines.append(f"input {slot}: {_input(matching.a, name)} → {_input(matching.b, other)}")
    return lines


def _as_sets(matching: Matching, x: Node, y: Node) -> bool:
    """Whether two nodes read the same, in whatever order."""
    mapped = sorted(matching.tensors.get(name, "\0") for name in x.inputs)
    return mapped == sorted(matching.equal.get(name, name) for name in y.inputs)


def _input(side: GraphSide, name: str) -> str:
    """A tensor that a node reads, with its value if that is short."""
    value = parameter_text(side, name)
    return f"{shown(name, 100)} ({value})" if value else shown(name, 100) or "none"


def _text(value: Any) -> str:
    return "none" if value is None else shown(attribute_text(value), 200)


def _apart(a: GraphView, x: Any, b: GraphView, y: Any) -> str:
    """How far two tensors are apart; nothing for other attributes."""
    if not (isinstance(x, TensorRecord) and isinstance(y, TensorRecord)) or list(x.dims) != list(y.dims):
        return ""
    return f": {distance(compare_arrays(a.array(x), b.array(y), Rule(atol=0.0, rtol=0.0)))[0]}"
