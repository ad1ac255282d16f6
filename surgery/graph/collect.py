"""Nodes, tensors and scopes of a model's structure, with names resolved: the input of the index."""

from dataclasses import dataclass, field

from layerwise._tool.backends.model.record_values import (
    Value,
    read_attribute,
    read_initializer,
    read_sparse_initializer,
    read_value,
)
from layerwise._tool.backends.model.records import (
    GraphSpans,
    Node,
    Span,
    read_function,
    read_graph,
    read_model,
    read_node,
)
from layerwise._tool.backends.model.structure import TensorRecord
from layerwise._tool.backends.model.wire import MAX_DEPTH, WireError
from layerwise._tool.backends.tensors import Dim, dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.graph.kinds import Kind
from layerwise._tool.surgery.model.topological_order import topological_order

PROBLEM_LIMIT = 50
_GRAPH_KINDS = (5, 10)


@dataclass(slots=True)
class TensorEntry:
    """A tensor. producer: its node, None if there is none. place: an initializer's message."""

    name: str
    scope: int
    kind: Kind
    dtype: str = ""
    shape: tuple[Dim, ...] | None = None
    producer: "NodeEntry | None" = None
    is_output: bool = False
    place: TensorRecord | None = None


@dataclass(slots=True, eq=False)
class NodeEntry:
    """A node. inputs, outputs, captures: tensor numbers, -1 for an omitted optional one. position: in its
    graph's file order. captures: read by its bodies from outside. number: in the index.
    """

    node: Node
    scope: int
    position: int
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    captures: dict[int, None] = field(default_factory=dict)
    bodies: list["ScopeEntry"] = field(default_factory=list)
    number: int = -1


@dataclass(slots=True)
class ScopeEntry:
    """A graph: the main one (0), a body of If, Loop or Scan (with its owner and attribute), or a function."""

    number: int
    kind: str
    name: str
    parent: "ScopeEntry | None" = None
    owner: NodeEntry | None = None
    attribute: str = ""
    names: dict[str, int] = field(default_factory=dict)
    nodes: list[NodeEntry] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


class Collector:
    """Reads a structure once. WireError if the bytes do not fit the format."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.model = read_model(data)
        self.tensors: list[TensorEntry] = []
        self.scopes: list[ScopeEntry] = []
        self.problems: list[str] = []
        self.nodes: list[NodeEntry] = []
        self.has_cycle = False
        self._graph(self.model.graph, self._scope("main", self.model.graph.name), 0)
        for span in self.model.functions:
            self._function(span)
        for scope in self.scopes:
            if scope.owner is None:
                self._number(scope)

    def problem(self, message: str) -> None:
        """Record a problem of the model, for display."""
        if len(self.problems) < PROBLEM_LIMIT:
            self.problems.append(shown(message, 300))

    def _scope(self, kind: str, name: str, owner: NodeEntry | None = None, attribute: str = "") -> ScopeEntry:
        parent = self.scopes[owner.scope] if owner else None
        scope = ScopeEntry(len(self.scopes), kind, name, parent, owner, attribute)
        self.scopes.append(scope)
        return scope

    def _function(self, span: Span) -> None:
        function = read_function(self.data, *span)
        name = f"{function.domain}:{function.graph.name}" if function.domain else function.graph.name
        scope = self._scope("function", f"{name}:{function.overload}" if function.overload else name)
        for item in function.inputs:
            self._define(scope, item, Kind.INPUT)
        scope.inputs = function.inputs
        self._body(function.graph, scope, function.outputs, 0)

    def _graph(self, graph: GraphSpans, scope: ScopeEntry, depth: int) -> None:
        data = self.data
        places = [read_initializer(data, s) for s in graph.initializers]
        places += [read_sparse_initializer(data, s) for s in graph.sparse]
        for place in places:
            entry = self.tensors[self._define(scope, place.name, Kind.INITIALIZER)]
            entry.dtype, entry.shape = dtype_name(place.dtype), tuple(place.dims)
            entry.place = entry.place or place
        inputs = [read_value(data, *s) for s in graph.inputs]
        outputs = [read_value(data, *s) for s in graph.outputs]
        for value in inputs:
            if value.name not in scope.names:
                self._define(scope, value.name, Kind.INPUT)
        scope.inputs = [v.name for v in inputs if self.tensors[scope.names[v.name]].kind == Kind.INPUT]
        self._body(graph, scope, [v.name for v in outputs], depth)
        self._types(scope, [*inputs, *outputs])

    def _body(self, graph: GraphSpans, scope: ScopeEntry, outputs: list[str], depth: int) -> None:
        """Read the nodes, number them in topological order, and mark the graph's outputs."""
        scope.nodes = [NodeEntry(read_node(self.data, *span), scope.number, i) for i, span in enumerate(graph.nodes)]
        for entry in scope.nodes:
            entry.outputs = [self._produce(scope, name, entry) for name in entry.node.outputs]
        for entry in scope.nodes:
            entry.inputs = [self._resolve(scope, name) for name in entry.node.inputs]
            self._bodies(entry, depth)
        for name in outputs:
            tensor = self.tensors[self._resolve(scope, name)] if name else None
            if tensor is not None and tensor.scope == scope.number:
                tensor.is_output = True
                tensor.kind = Kind.OUTPUT if tensor.kind == Kind.NODE else tensor.kind
        scope.outputs = outputs
        self._types(scope, [read_value(self.data, *s) for s in graph.values])
        self._sort(scope)

    def _bodies(self, entry: NodeEntry, depth: int) -> None:
        for span in entry.node.attributes:
            # ATTRIBUTE.g is field 6, .graphs field 11: no other attribute needs reading here
            if b"\x32" not in self.data[span[0] : span[1]] and b"\x5a" not in self.data[span[0] : span[1]]:
                continue
            attribute = read_attribute(self.data, *span, 1 << 16)
            if attribute.kind not in _GRAPH_KINDS:
                continue
            if depth * 3 > MAX_DEPTH:
                raise WireError(f"byte {span[0]}: nested more than {MAX_DEPTH} levels deep")
            for value in attribute.values:
                body = read_graph(self.data, *value)
                scope = self._scope("body", body.name, entry, attribute.name)
                entry.bodies.append(scope)
                self._graph(body, scope, depth + 1)

    def _define(self, scope: ScopeEntry, name: str, kind: Kind) -> int:
        number = scope.names.get(name)
        if number is None:
            number = scope.names[name] = len(self.tensors)
            self.tensors.append(TensorEntry(name, scope.number, kind))
        elif kind != Kind.NODE:
            self.problem(f"two {kind.name.lower()}s are named {name!r}")
        return number

    def _produce(self, scope: ScopeEntry, name: str, node: NodeEntry) -> int:
        if not name:
            return -1
        known = name in scope.names
        number = self._define(scope, name, Kind.NODE)
        if known:
            self.problem(f"tensor {name!r} is made more than once")
        if self.tensors[number].producer is None:
            self.tensors[number].producer = node
        return number

    def _resolve(self, scope: ScopeEntry, name: str) -> int:
        """Return the tensor that `name` refers to in `scope`; captures are recorded with the owners of the bodies."""
        if not name:
            return -1
        number = scope.names.get(name)
        if number is not None:
            return number
        owners: list[NodeEntry] = []
        at: ScopeEntry | None = scope
        top = scope
        while at is not None:
            top = at
            number = at.names.get(name)
            if number is not None:
                break
            if at.owner is not None:
                owners.append(at.owner)
            at = at.parent
        if number is None:
            number = self._define(top, name, Kind.MISSING)
            self.problem(f"tensor {name!r} is read but nothing makes it")
        for owner in owners:
            owner.captures[number] = None
        return number

    def _types(self, scope: ScopeEntry, values: list[Value]) -> None:
        """Fill in types from value infos, where nothing better is known."""
        for value in values:
            number = scope.names.get(value.name)
            if number is not None and self.tensors[number].kind != Kind.INITIALIZER:
                entry = self.tensors[number]
                entry.dtype = value.kind or entry.dtype
                entry.shape = entry.shape if value.shape is None else value.shape

    def _sort(self, scope: ScopeEntry) -> None:
        reads = [self._sources(entry) for entry in scope.nodes]
        order, cycle = topological_order(reads)
        if cycle:
            self.has_cycle = True
            named = [scope.nodes[i].node.name or f"#{i} {scope.nodes[i].node.op}" for i in cycle[:5]]
            self.problem(f"{len(cycle)} nodes lie on or behind a cycle, among them: {', '.join(named)}")
        scope.nodes = [scope.nodes[i] for i in order]

    def _sources(self, entry: NodeEntry) -> list[int]:
        found = []
        for number in [*entry.inputs, *entry.captures]:
            producer = self.tensors[number].producer if number >= 0 else None
            if producer is not None and producer.scope == entry.scope:
                found.append(producer.position)
        return found

    def _number(self, scope: ScopeEntry) -> None:
        """Number nodes in topological order; a node's bodies follow it."""
        for entry in scope.nodes:
            entry.number = len(self.nodes)
            self.nodes.append(entry)
            for body in entry.bodies:
                self._number(body)
