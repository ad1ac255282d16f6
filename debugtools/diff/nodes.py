"""Nodes of two graphs that were matched: which of them changed, and how; bodies of control flow included."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from layerwise._tool.backends.model.records import Node
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison, compare_arrays, worst
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.debugtools.diff.matching import GraphSide, Matching
from layerwise._tool.debugtools.diff.outcome import Section
from layerwise._tool.surgery.inspect.text import attribute_text
from layerwise._tool.surgery.inspect.view import GraphView

_LISTED = 8


@dataclass
class Weights:
    """Initializers matched: by name where their values are the same, by content under another name, by name again."""

    same: dict[str, str] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    only_a: list[str] = field(default_factory=list)
    only_b: list[str] = field(default_factory=list)

    @property
    def tensors(self) -> dict[str, str]:
        """Name in the first -> name in the second, changed ones too."""
        return {**self.same, **self.renamed, **{name: name for name in self.changed}}


def match_weights(a: GraphSide, b: GraphSide) -> Weights:
    """Match the initializers; values that may have been renamed are hashed, no others."""
    found = Weights()
    for name, tensor in a.weights.items():
        if name in b.weights and _same(a.view, tensor, b.view, b.weights[name]):
            found.same[name] = name
    by_content: dict[bytes, list[str]] = {}
    for name, tensor in b.weights.items():
        digest = b.digest(tensor) if name not in found.same else None
        if digest is not None:
            by_content.setdefault(digest, []).append(name)
    taken = set(found.same)
    for name, tensor in a.weights.items():
        if name in found.same or not by_content:
            continue
        others = by_content.get(a.digest(tensor) or b"")
        if others:
            found.renamed[name] = others.pop(0)
            taken.add(found.renamed[name])
    _leftovers(a, b, found, taken)
    return found


def _leftovers(a: GraphSide, b: GraphSide, found: Weights, taken: set[str]) -> None:
    for name in a.weights:
        if name not in found.same and name not in found.renamed:
            (found.changed if name in b.weights and name not in taken else found.only_a).append(name)
    known = taken | set(found.changed)
    found.only_b = [name for name in b.weights if name not in known]


def add_changed(section: Section, a: GraphSide, b: GraphSide, name: str, rule: Rule) -> Comparison | None:
    """Note how far a weight of both sides is apart; nothing where it is within `rule`. Return what was measured."""
    x, y = a.weights[name], b.weights[name]
    result = compare_arrays(a.view.array(x), b.view.array(y), rule)
    if result.passed:
        return None
    text, fields = distance(result)
    section.add(f"{shown(name, 200)} {types(x, y)}: {text}", name=name, a=described(x), b=described(y), **fields)
    return result


def distance(result: Comparison) -> tuple[str, dict[str, Any]]:
    """How far two arrays are apart, as text and as fields."""
    totals = result.totals
    if totals is None:
        return shown(result.note or f"{result.over} elements differ", 200), {"note": result.note}
    fields = {
        "max_abs": worst(totals.abs), "max_rel": worst(totals.rel), "rel_l2": result.rel_l2, "over": result.over,
        "size": totals.abs.count,
    }  # fmt: skip
    rel = "-" if result.rel_l2 is None else f"{result.rel_l2:.4g}"
    text = f"max abs {fields['max_abs']:.4g}, rel L2 {rel}, {result.over} of {fields['size']} elements differ"
    return text, fields


def described(tensor: TensorRecord) -> dict[str, Any]:
    """Type and shape, for machines."""
    return {"dtype": dtype_name(tensor.dtype), "shape": list(tensor.dims)}


def types(x: TensorRecord, y: TensorRecord) -> str:
    """Type and shape, of both where they differ."""
    first, second = (f"{dtype_name(t.dtype)} {shown(str(list(t.dims)), 80)}" for t in (x, y))
    return first if first == second else f"{first} → {second}"


class NodeChanges:
    """Collects the differences of nodes over the main graph, its bodies and functions."""

    def __init__(self) -> None:
        self.changed = Section("nodes changed", "nodes_changed")
        self.removed = Section("nodes only in the first", "nodes_only_a")
        self.added = Section("nodes only in the second", "nodes_only_b")
        self.renamed = Section("nodes renamed", "nodes_renamed", cosmetic=True)

    @property
    def sections(self) -> list[Section]:
        """All sections, in the order to show them."""
        return [self.changed, self.removed, self.added, self.renamed]

    def compare(self, a: GraphSide, b: GraphSide, tensors: Mapping[str, str], prefix: str = "") -> None:
        """Match two graphs whose inputs and weights correspond by `tensors`, and note what differs."""
        matching = Matching(a, b, tensors)
        matching.run()
        for i, node in enumerate(a.nodes):
            j = matching.forth.get(i)
            if j is None:
                self.removed.add(prefix + node_text(a, i), node=prefix + a.labels[i], op=node.op)
            else:
                self._pair(matching, i, j, prefix)
        for j, node in enumerate(b.nodes):
            if j not in matching.back:
                self.added.add(prefix + node_text(b, j), node=prefix + b.labels[j], op=node.op)
        self._outputs(matching, prefix)

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
                self.compare(inner, other, {**tensors, **weights.tensors}, f"{prefix}{shown(a.labels[i], 80)}/{name}/")
                lines += [f"{shown(name, 80)}: weight {shown(w, 100)} changed" for w in weights.changed]
            elif not _same(a.view, x, b.view, y):
                lines.append(f"{shown(name, 80)}: {_text(x)} → {_text(y)}{_apart(a.view, x, b.view, y)}")
        return lines

    def _outputs(self, matching: Matching, prefix: str) -> None:
        """Graph outputs that another node makes than the one that corresponds."""
        a, b = matching.a, matching.b
        for x, y in zip(a.outputs, b.outputs, strict=False):
            before, after = a.maker.get(x), b.maker.get(y)
            if before and after and before[0] in matching.forth and matching.tensors.get(x) != y:
                labels = a.labels[before[0]], b.labels[after[0]]
                text = (
                    f"{prefix}output {shown(y, 200)}: made by {shown(labels[0], 200)}, now by {shown(labels[1], 200)}"
                )
                self.changed.add(text, node=prefix + labels[0], other=prefix + labels[1], op="", changes=[text])


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


def _inputs(matching: Matching, x: Node, y: Node) -> list[str]:
    lines = []
    if len(x.inputs) != len(y.inputs):
        lines.append(f"inputs: {len(x.inputs)} → {len(y.inputs)}")
    for slot, (name, other) in enumerate(zip(x.inputs, y.inputs, strict=False)):
        if matching.tensors.get(name) != other:
            lines.append(f"input {slot}: {shown(name, 100) or 'none'} → {shown(other, 100) or 'none'}")
    return lines


def _same(a: GraphView, x: Any, b: GraphView, y: Any) -> bool:
    if isinstance(x, TensorRecord) and isinstance(y, TensorRecord):
        return x.dtype == y.dtype and list(x.dims) == list(y.dims) and same_bits(a.array(x), b.array(y))
    return type(x) is type(y) and bool(x == y)


def _text(value: Any) -> str:
    return "none" if value is None else shown(attribute_text(value), 200)


def _apart(a: GraphView, x: Any, b: GraphView, y: Any) -> str:
    """How far two tensors are apart; nothing for other attributes."""
    if not (isinstance(x, TensorRecord) and isinstance(y, TensorRecord)) or list(x.dims) != list(y.dims):
        return ""
    return f": {distance(compare_arrays(a.array(x), b.array(y), Rule(atol=0.0, rtol=0.0)))[0]}"
