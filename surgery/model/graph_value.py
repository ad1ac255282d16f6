"""A graph as a value: nodes, inputs, outputs, weights and declarations, with makers and readers of tensors."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, TypeVar

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.lookups import Lookups
from layerwise._tool.surgery.model.proto import Proto, remainder

AnyGraph = TypeVar("AnyGraph", bound="Graph")
"""A graph alone, or a whole model: what changes one gives back the same."""
Nodes = tuple[onnx.NodeProto, ...]
Values = tuple[onnx.ValueInfoProto, ...]
OUTPUT = "output:"
_FEW = 32  # nodes; more are replaced in one pass


def changed(proto: Proto, **fields: object) -> Proto:
    """Return a copy of `proto` with other values in the scalar `fields`."""
    copy: Proto = type(proto)()
    copy.CopyFrom(proto)
    for name, value in fields.items():
        setattr(copy, name, value)
    return copy


def node_label(node: onnx.NodeProto) -> str:
    """Return a node's name, or that of its first output."""
    return node.name or next(filter(None, node.output), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A graph: the main one, a body, or a function's. The order of nodes is the file's, not necessarily topological.

    values: value_info by name. initializers: by name, in order; large ones external. frame: the rest of its proto.
    outer: the graph that contains the body's node.
    """

    nodes: Nodes
    inputs: Values
    outputs: Values
    values: Mapping[str, onnx.ValueInfoProto]
    initializers: Mapping[str, onnx.TensorProto]
    frame: onnx.GraphProto | onnx.FunctionProto
    outer: "Graph | None" = field(default=None, compare=False, repr=False)
    _known: list[Lookups] = field(default_factory=list, compare=False, repr=False)
    carried: list[object] = field(default_factory=list, compare=False, repr=False)
    """What others know of this version, or of an earlier one: a new version starts with it."""

    @property
    def lookups(self) -> Lookups:
        """Makers and readers of tensors, nodes by name."""
        if not self._known:
            self._known.append(Lookups(self.nodes))
        elif self._known[0].nodes is not self.nodes:
            self._known[0] = self._known[0].carried(self.nodes)
        return self._known[0]

    def with_(self, **fields: Any) -> Self:
        """Return the graph with other fields. Lookups are carried over."""
        return replace(self, _known=list(self._known), carried=list(self.carried), **fields)

    def forget(self) -> None:
        """Drop the lookups of this version; they are rebuilt on demand."""
        self._known.clear()
        self.carried.clear()

    def learn_from(self, other: "Graph") -> None:
        """Reuse the lookups of another version, if this one has none: updating them is cheaper than building them."""
        if not self._known:
            self._known.extend(other._known)
        if not self.carried:
            self.carried.extend(other.carried)

    def replaced(self, nodes: Mapping[int, Iterable[onnx.NodeProto]]) -> Self:
        """Return the graph with some nodes replaced; `nodes`: id(node) -> its replacements."""
        kept, at, ids = list[onnx.NodeProto](), 0, list(map(id, self.nodes))
        for place in sorted(map(ids.index, nodes)) if len(nodes) < _FEW else range(len(ids)):
            if ids[place] in nodes:
                kept += self.nodes[at:place]
                kept += nodes[ids[place]]
                at = place + 1
        return self.with_(nodes=(*kept, *self.nodes[at:]))

    # Names

    @property
    def is_function(self) -> bool:
        """Whether it is a function, without initializers of its own and types."""
        return isinstance(self.frame, onnx.FunctionProto)

    @property
    def input_names(self) -> list[str]:
        """Names of the required inputs: graph inputs that are not initializers."""
        return [value.name for value in self.inputs if value.name not in self.initializers]

    @property
    def output_names(self) -> list[str]:
        """Names of the graph's outputs."""
        return [value.name for value in self.outputs]

    def sparse_names(self) -> set[str]:
        """Names of sparse initializers."""
        return {sparse.values.name for sparse in getattr(self.frame, "sparse_initializer", ())}

    def defines(self, name: str) -> bool:
        """True if the tensor is made, fed or stored in this graph itself."""
        return (
            name in self.lookups.makers
            or name in self.initializers
            or any(value.name == name for value in self.inputs)
            or name in self.sparse_names()
        )

    def has(self, name: str) -> bool:
        """True if nodes here can read the tensor; bodies see the tensors of outer graphs."""
        return self.defines(name) or (self.outer is not None and self.outer.has(name))

    def taken(self, name: str) -> bool:
        """True if a new tensor may not have this name: it is used here, in bodies or in outer graphs."""
        known = self.lookups
        used = name in known.makers or name in known.readers or name in self.initializers or name in self.values
        used = used or any(value.name == name for value in (*self.inputs, *self.outputs))
        return used or name in known.inner_names or (self.outer is not None and self.outer.taken(name))

    def fresh(self, wish: str, besides: Iterable[str] = ()) -> str:
        """Return an unused tensor name: `wish`, or with a number appended; not in `besides`."""
        used = frozenset(besides)
        return _free(wish, lambda name: name in used or self.taken(name))

    def fresh_node(self, wish: str, besides: Iterable[str] = ()) -> str:
        """Return an unused node name."""
        used = frozenset(besides)
        return _free(wish, lambda name: name in used or name in self.lookups.by_name)

    def node(self, name: str) -> onnx.NodeProto:
        """Return the node with that name or, if there is none, the one that makes the tensor `name`.

        "output:NAME" is always the one that makes that tensor. LayerwiseError if there is none, or
        several have the name: their outputs' names tell them apart.
        """
        named = self.lookups.by_name.get(name, ())
        if len(named) == 1:
            return named[0]
        maker = self.lookups.makers.get(name) or self.lookups.makers.get(name.removeprefix(OUTPUT))
        if maker is not None:
            return maker
        if named:
            first = shown(next(filter(None, named[0].output), ""), 80)
            hint = f"name one by its first output, as {first!r}"
            raise LayerwiseError(f"{len(named)} nodes are named {shown(name, 120)!r}: {hint}")
        raise LayerwiseError(f"there is no node {shown(name, 120)!r}")

    def label(self, node: onnx.NodeProto) -> str:
        """Return the name by which `node` finds the node: its own, or its first output if that is not unique."""
        if len(self.lookups.by_name.get(node.name, ())) == 1:
            return node.name
        output: str = next(filter(None, node.output), node.name)
        namesakes = self.lookups.by_name.get(output, ())
        return output if all(other is node for other in namesakes) else f"{OUTPUT}{output}"

    def read_outside(self, name: str) -> bool:
        """True if the tensor is an output of the graph."""
        return any(value.name == name for value in self.outputs)

    def value(self, name: str) -> onnx.ValueInfoProto | None:
        """Return the declaration of a tensor: as value_info, output or input."""
        known = self.values.get(name)
        return known or next((v for v in (*self.outputs, *self.inputs) if v.name == name), None)

    # Protos

    @classmethod
    def of(cls, graph: onnx.GraphProto, outer: "Graph | None" = None) -> "Graph":
        """Convert a body's GraphProto."""
        return Graph(**graph_parts(graph), outer=outer)

    @classmethod
    def of_function(cls, function: onnx.FunctionProto) -> "Graph":
        """Convert a FunctionProto; its inputs and outputs are names without types."""
        return Graph(
            nodes=tuple(function.node),
            inputs=tuple(onnx.ValueInfoProto(name=name) for name in function.input),
            outputs=tuple(onnx.ValueInfoProto(name=name) for name in function.output),
            values={value.name: value for value in function.value_info},
            initializers={},
            frame=remainder(function, ("node", "input", "output", "value_info")),
        )

    def graph_proto(self) -> onnx.GraphProto:
        """Return it as a GraphProto."""
        proto = onnx.GraphProto()
        proto.CopyFrom(self.frame)
        proto.node.extend(self.nodes)
        proto.input.extend(self.inputs)
        proto.output.extend(self.outputs)
        proto.value_info.extend(self.values.values())
        proto.initializer.extend(self.initializers.values())
        return proto

    def function_proto(self) -> onnx.FunctionProto:
        """Return it as a FunctionProto."""
        proto = onnx.FunctionProto()
        proto.CopyFrom(self.frame)
        proto.node.extend(self.nodes)
        proto.input.extend(value.name for value in self.inputs)
        proto.output.extend(value.name for value in self.outputs)
        proto.value_info.extend(self.values.values())
        return proto


def graph_parts(graph: onnx.GraphProto) -> dict[str, Any]:
    """Return the fields of a `Graph`."""
    return {
        "nodes": tuple(graph.node),
        "inputs": tuple(graph.input),
        "outputs": tuple(graph.output),
        "values": {value.name: value for value in graph.value_info},
        "initializers": {tensor.name: tensor for tensor in graph.initializer},
        "frame": remainder(graph, ("node", "input", "output", "value_info", "initializer")),
    }


def _free(wish: str, taken: Callable[[str], bool]) -> str:
    name, number = wish, 1
    while taken(name):
        number += 1
        name = f"{wish}_{number}"
    return name
