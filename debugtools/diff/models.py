"""Two ONNX models: what was added, removed, changed and renamed, in their structure and in their weights."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from layerwise._tool.backends.errors import BadFile
from layerwise._tool.backends.filesystem.places import user_path
from layerwise._tool.backends.garbage import not_collecting
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.record_values import Value
from layerwise._tool.backends.model.records import ModelRecord, read_function
from layerwise._tool.backends.model.wire import WireError
from layerwise._tool.backends.tensors import format_shape
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.align.alignment import AlignedPair
from layerwise._tool.debugtools.align.file import fitting_map, load_map
from layerwise._tool.debugtools.align.onnx_graph import onnx_graph
from layerwise._tool.debugtools.compare.aligning.graphs import digest
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Rule, Tolerances
from layerwise._tool.debugtools.compare.spec import ToleranceSpec
from layerwise._tool.debugtools.diff.by_alignment import align_rest
from layerwise._tool.debugtools.diff.graph_side import GraphSide
from layerwise._tool.debugtools.diff.nodes import NodeChanges, graph_side, operator
from layerwise._tool.debugtools.diff.outcome import DiffOutcome
from layerwise._tool.debugtools.diff.spec import DiffSpec
from layerwise._tool.debugtools.diff.weights import (
    Weights,
    add_changed,
    add_relaid,
    described,
    layout_of,
    match_weights,
)
from layerwise._tool.surgery.inspect.view import GraphView, open_view
from layerwise._tool.surgery.model.structure import Structure

_EXACT = Rule(atol=0.0, rtol=0.0)


@dataclass
class Opened:
    """A model with its main graph."""

    file: ModelFile
    data: bytes
    head: ModelRecord
    graph: GraphSide


def diff_models(spec: DiffSpec) -> DiffOutcome:
    """Compare two models. Weights must be equal to the bit, or within the tolerances if any are given.

    BadFile if one cannot be read as a model, or a map as such; UsageError if that is of other models.
    """
    try:  # a million small objects that live to the end: collecting costs as much as comparing
        with not_collecting(), ModelFile(spec.a) as first, ModelFile(spec.b) as second:
            given = [] if spec.align in ("auto", "names") else _map_pairs(user_path(spec.align), (first, second))
            changes = NodeChanges(None if spec.align == "names" else align_rest, given)
            return _Models(_opened(first), _opened(second), spec.tolerance, changes).outcome()
    except WireError as error:  # within an attribute, which is read when it is compared
        raise BadFile(f"{spec.a} or {spec.b}", f"damaged ONNX model: {error}") from error


def _map_pairs(path: Path, models: tuple[ModelFile, ModelFile]) -> list[AlignedPair]:
    """The pairs of a map that a comparison saved. BadFile if it is none, UsageError if it is of other models."""
    first, second = (onnx_graph(Structure.from_proto(file.structure(), file.folder)) for file in models)
    found = fitting_map(path, load_map(path), (first, second), (digest(first), digest(second)))
    return found.alignment.pairs


def _opened(file: ModelFile) -> Opened:
    data = file.structure_bytes()
    try:
        view, head = open_view(file, data)
        return Opened(file, data, head, graph_side(view))
    except WireError as error:
        raise BadFile(file.path, f"damaged ONNX model: {error}") from error


class _Models:
    def __init__(self, a: Opened, b: Opened, tolerance: ToleranceSpec, nodes: NodeChanges) -> None:
        self.a, self.b, self._nodes = a, b, nodes
        self._tolerances = None if tolerance == ToleranceSpec() else Tolerances(tolerance)
        self.found = DiffOutcome("models")

    def outcome(self) -> DiffOutcome:
        self._head()
        self._values("inputs", self.a.graph.view.inputs, self.b.graph.view.inputs)
        self._values("outputs", self.a.graph.view.outputs, self.b.graph.view.outputs)
        weights = match_weights(self.a.graph, self.b.graph)
        nodes = self._nodes
        nodes.opsets = self.a.head.opsets, self.b.head.opsets
        weights.settle(nodes.compare(self.a.graph, self.b.graph, self._inputs(), weights).tensors)
        self._functions(nodes)
        self._operators()
        self.found.sections += nodes.sections
        worst = self._weights(weights)
        self.found.summary = self._summary(nodes, weights, worst)
        graphs = self.a.graph, self.b.graph
        if self.found.equal and not any(graph.nodes or graph.weights or graph.outputs for graph in graphs):
            self.found.nothing_compared("neither model has a node, a weight or an output")
        return self.found

    def _head(self) -> None:
        section, notes = self.found.section("model", "model"), self.found.section("notes", "notes", cosmetic=True)
        x, y = self.a.head, self.b.head
        for domain in dict.fromkeys([*x.opsets, *y.opsets]):
            before, after = x.opsets.get(domain), y.opsets.get(domain)
            if before != after:
                name = f"opset {shown(domain, 80) or 'ai.onnx'}"
                section.add(f"{name}: {_absent(before)} → {_absent(after)}", field=name, a=before, b=after)
        if x.ir_version != y.ir_version:
            section.add(
                f"IR version: {x.ir_version} → {y.ir_version}", field="ir_version", a=x.ir_version, b=y.ir_version
            )
        for field in ("producer", "producer_version"):
            before, after = getattr(x, field), getattr(y, field)
            if before != after:
                notes.add(f"{field}: {shown(before, 80)!r} → {shown(after, 80)!r}", field=field, a=before, b=after)

    def _values(self, what: str, a: Sequence[Value], b: Sequence[Value]) -> None:
        section = self.found.section(what, what)
        before, after = ({value.name: value for value in values} for values in (a, b))
        for name in dict.fromkeys([*before, *after]):
            x, y = (_typed(values.get(name)) for values in (before, after))
            if x != y:
                section.add(f"{shown(name, 200)}: {x} → {y}", name=name, a=x, b=y)
        if not section.items and list(before) != list(after):
            section.add("the same, in another order", a=list(before), b=list(after))

    def _inputs(self) -> Mapping[str, str]:
        """Inputs correspond by name, what is left by position."""
        a, b = self.a.graph.inputs, self.b.graph.inputs
        found = {name: name for name in a if name in set(b)}
        left = [[name for name in names if name not in found] for names in (a, b)]
        if len(a) == len(b):
            found.update(zip(*left, strict=True))
        return found

    def _operators(self) -> None:
        section = self.found.section("operators", "operators")
        before, after = (Counter(map(operator, side.graph.nodes)) for side in (self.a, self.b))
        for op in sorted(before.keys() | after.keys()):
            if before[op] != after[op]:
                section.add(f"{shown(op, 80)}: {before[op]} → {after[op]}", op=op, a=before[op], b=after[op])

    def _functions(self, nodes: NodeChanges) -> None:
        before, after = (_functions(side) for side in (self.a, self.b))
        section = self.found.section("functions", "functions")
        for name in dict.fromkeys([*before, *after]):
            if name in before and name in after:
                x, y = before[name], after[name]
                nodes.compare(x, y, {n: n for n in x.inputs}, match_weights(x, y), f"{shown(name, 100)}/")
                if x.inputs != y.inputs or len(x.outputs) != len(y.outputs):
                    section.add(f"{shown(name, 200)}: other inputs or outputs", name=name, how="changed")
            else:
                how = "only in the first" if name in before else "only in the second"
                section.add(f"{shown(name, 200)}: {how}", name=name, how=how)

    def _weights(self, found: Weights) -> str:
        """Add the sections of weights; return what to say of the one that changed most."""
        a, b = self.a.graph, self.b.graph
        changed = self.found.section("weights changed", "weights_changed")
        worst: tuple[float, str] = (-1.0, "")
        relaid = self.found.section("weights in another layout", "weights_relaid")
        for name, other in (*((name, name) for name in found.changed), *found.paired.items()):
            rule = self._tolerances.rule(name) if self._tolerances else _EXACT
            turned = name in found.paired or a.weights[name].dims != b.weights[other].dims
            layout = layout_of(a, b, (name, other)) if turned else None
            if layout is not None and add_relaid(relaid, a, b, (name, other), layout):
                continue
            result = add_changed(changed, a, b, (name, other), rule, layout)
            if result is not None and result.totals is not None and float(result.totals.abs.high) > worst[0]:
                worst = float(result.totals.abs.high), name
        for title, key, names, side in (("weights only in the first", "weights_only_a", found.only_a, a),
                                        ("weights only in the second", "weights_only_b", found.only_b, b)):  # fmt: skip
            section = self.found.section(title, key)
            for name in names:
                kind = described(side.weights[name])
                section.add(f"{shown(name, 200)} {kind['dtype']} {kind['shape']}", name=name, **kind)
        shared = self.found.section(
            "weights of equal values, held another number of times", "weights_shared", cosmetic=True
        )
        for place, names in (("first", found.shared_a), ("second", found.shared_b)):
            for name in names:
                shared.add(f"{shown(name, 200)}: once more in the {place}", name=name, side=place)
        renamed = self.found.section("weights renamed", "weights_renamed", cosmetic=True)
        for name, other in found.renamed.items():
            renamed.add(f"{shown(name, 200)} → {shown(other, 200)}", a=name, b=other)
        return f", max abs {worst[0]:.4g} in {shown(worst[1], 100)!r}" if worst[1] else ""

    def _summary(self, nodes: NodeChanges, weights: Weights, worst: str) -> str:
        counts = f"{len(self.a.graph.nodes)} nodes, {len(self.a.graph.weights)} weights"
        renamed = len(nodes.renamed.items) + len(weights.renamed)
        aside = f" ({renamed} nodes and weights have other names)" if renamed else ""
        if self.found.equal:
            return f"equal: {counts}{aside}"
        counts_of = {section.key: len(section.items) for section in self.found.sections}
        regions = counts_of["regions"]
        other_way = f", {regions} regions written in another way" if regions else ""
        relaid = counts_of["weights_relaid"]
        turned = f", {relaid} in another layout" if relaid else ""
        return (
            f"models differ: nodes: {len(nodes.changed.items)} changed, {len(nodes.added.items)} added, "
            f"{len(nodes.removed.items)} removed{other_way}; weights: {counts_of['weights_changed']} changed{worst}"
            f"{turned}, {len(weights.only_b)} added, {len(weights.only_a)} removed{aside}"
        )


def _functions(side: Opened) -> dict[str, GraphSide]:
    found = {}
    for span in side.head.functions:
        function = read_function(side.data, *span)
        name = ".".join(filter(None, (function.domain, function.graph.name, function.overload)))
        found[name] = GraphSide(GraphView(side.file, side.data, function.graph), function.inputs, function.outputs)
    return found


def _typed(value: Value | None) -> str:
    return "none" if value is None else f"{value.kind or 'untyped'} {format_shape(value.shape)}"


def _absent(value: object) -> object:
    return "none" if value is None else value
