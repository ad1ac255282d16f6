"""A changed graph laid over the index of the file it came from: shown at once, whatever the size of the graph.

Nodes of the file keep their numbers, changed ones too; new ones get numbers after the file's, the same ones in every
state of the graph. What a state costs grows with what was changed, besides one pass over the nodes' identities.
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backends.reads import captures, subgraphs
from backends.record_values import read_value
from backends.tensors import dtype_name
from surgery.graph.attribute_text import attribute_text
from surgery.graph.ground import MAIN, NOTHING, Ground, nbytes
from surgery.graph.index import Dim, GraphIndex, Numbers
from surgery.graph.inner import Inner
from surgery.graph.placing import by_place, in_order
from surgery.graph.repeats import Repeat, find_repeats
from surgery.graph.search import terms
from surgery.lookups import difference

if TYPE_CHECKING:
    import onnx

    from surgery.graph_value import Graph
    from surgery.structure import Structure

Type = tuple[str, tuple[Dim, ...] | None]


class Overlay(GraphIndex):
    """One state of the graph, with the interface of an index.

    own: nodes that are not as in the file, by number. gone: the file's nodes that are no more. places: for each node of
    `order` what it is sorted by. types: what is known of the main graph's tensors besides what the graph says.
    """

    def __init__(self, ground: Ground, state: "Structure", types: Mapping[str, Type] | None = None) -> None:
        self.ground, self.state, self.types = ground, state, dict(types or {})
        self._base = ground.index
        self.folder = ground.index.folder
        self.own: dict[int, onnx.NodeProto] = {}
        self._numbers: dict[int, int] = {}
        alive = self._take_main()
        self._inner = Inner(ground, state, self.own)
        self.own |= {number: self._inner.protos[number] for number in self._inner.own}
        self._scope_of = dict(self._inner.own)
        self._drop_inner(alive)
        self._alive = alive
        self.gone = set(np.flatnonzero(~alive).tolist())
        self.order, self.places = in_order(self, alive)
        self.n_nodes, self.n_tensors = ground.n_nodes, ground.n_tensors
        self._ends = {MAIN: (set(state.input_names), set(state.output_names))}
        self.meta = self._described()

    def _take_main(self) -> NDArray[np.bool_]:
        """Number the main graph's new nodes; returns which of the file's nodes are still there."""
        ground = self.ground
        lost, new = difference(ground.structure.nodes, self.state.nodes)
        free = {ground.numbers[id(node)] for node in lost}
        for node in new:
            number = self._numbers[id(node)] = ground.node_number(node, MAIN, free, self.own)
            free.discard(number)
            if ground.proto_of.get(number) != node:
                self.own[number] = node
        alive = np.ones(self._base.n_nodes, np.bool_)
        alive[list(free)] = False
        return alive

    def _drop_inner(self, alive: NDArray[np.bool_]) -> None:
        """The nodes of bodies go with their owner; in a changed body those go that it does not have any more."""
        scopes, inner = self._base.meta["scopes"], self._inner
        if len(scopes) < 2:
            return
        lost = np.zeros(len(scopes), np.bool_)
        for number, scope in enumerate(scopes):
            owner = scope["owner"]
            if owner < 0:
                lost[number] = inner.functions and number > MAIN and number not in inner.live
            else:
                lost[number] = not alive[owner] or (owner in self.own and number not in inner.live)
            if number in inner.graphs:
                at = self._base.scope_nodes(number)
                alive[at] = [node in inner.protos for node in at.tolist()]
            elif lost[number]:
                alive[self._base.scope_nodes(number)] = False

    def _described(self) -> dict[str, Any]:
        state, base = self.state, self._base.meta
        scopes = list(base["scopes"])
        for number, place in enumerate(self.ground.places[len(scopes) :], len(scopes)):
            kind = "function" if place.owner < 0 else "body"
            scopes.append({"kind": kind, "name": place.attribute, "attribute": place.attribute, "parent": MAIN,
                           "owner": place.owner, "inputs": [], "outputs": [], "n_nodes": 0})  # fmt: skip
            if place.owner >= 0:
                scopes[number]["parent"] = self.node_scope(place.owner) if self.has(place.owner) else MAIN
        for number, graph in self._inner.graphs.items():
            scopes[number] = {**scopes[number], "inputs": graph.input_names, "outputs": graph.output_names,
                              "n_nodes": len(graph.nodes)}  # fmt: skip
        return {**base, "inputs": state.input_names, "outputs": state.output_names, "opsets": dict(state.opsets),
                "n_nodes": len(self.order), "weight_bytes": self.ground.weight_bytes(state),
                "scopes": scopes}  # fmt: skip

    # Graphs

    def graph(self, scope: int) -> "Graph":
        """The main graph, a body or a function of this state. KeyError where there is none."""
        if scope == MAIN:
            return self.state
        found = self._inner.graphs.get(scope) or self.ground.graph(scope)
        if found is None:
            raise KeyError(scope)
        return found

    def _changed(self, scope: int) -> "Graph | None":
        """As `graph`, None for a body or function that is as in the file."""
        return self.state if scope == MAIN else self._inner.graphs.get(scope)

    def _holder(self, tensor: int) -> "Graph | None":
        """The graph that knows of a tensor, None where the file's index does."""
        scope = self.tensor_scope(tensor)
        if tensor < self._base.n_tensors:
            return self._changed(scope)
        return self._changed(scope) or self.ground.graph(scope) or NOTHING

    def bodies(self, node: int) -> list[int]:
        live = self._inner.live
        return [scope for scope in super().bodies(node) if self.has(node) and (node not in self.own or scope in live)]

    def scope_nodes(self, scope: int) -> Numbers:
        return self.order[[self.node_scope(node) == scope for node in self.order.tolist()]]

    # Nodes

    def number(self, node: "onnx.NodeProto") -> int:
        """The number of a node of the main graph or of a changed body or function, -1 for any other."""
        own = self._numbers.get(id(node), -1)
        own = own if own >= 0 else self.ground.numbers.get(id(node), -1)
        return own if own >= 0 else self._inner.number(node)

    def proto(self, node: int) -> "onnx.NodeProto | None":
        """A node of this state, or of the file, as a proto."""
        return self.own.get(node) or self._inner.protos.get(node) or self.ground.proto(node)

    def label(self, node: int) -> str:
        """What edits of the graph that the node stands in find it by."""
        proto = self.proto(node)
        return "" if proto is None else self.graph(self.node_scope(node)).label(proto)

    def node_name(self, node: int) -> str:
        return self.own[node].name if node in self.own else self._base.node_name(node)

    def node_op(self, node: int) -> str:
        return self.own[node].op_type if node in self.own else self._base.node_op(node)

    def node_domain(self, node: int) -> str:
        return self.own[node].domain if node in self.own else self._base.node_domain(node)

    def node_scope(self, node: int) -> int:
        return self._scope_of.get(node, MAIN) if node in self.own else self._base.node_scope(node)

    def node_position(self, node: int) -> int:
        return -1 if node in self.own else self._base.node_position(node)

    def node_inputs(self, node: int) -> list[int]:
        own = self.own.get(node)
        return self._base.node_inputs(node) if own is None else self._tensors(node, own.input)

    def node_outputs(self, node: int) -> list[int]:
        own = self.own.get(node)
        return self._base.node_outputs(node) if own is None else self._tensors(node, own.output)

    def node_captures(self, node: int) -> list[int]:
        own = self.own.get(node)
        if own is None:
            return self._base.node_captures(node)
        return self._tensors(node, dict.fromkeys(name for body in subgraphs(own) for name in captures(body)))

    def _tensors(self, node: int, names: Iterable[str]) -> list[int]:
        scope = self._scope_of.get(node, MAIN)
        return [self._inner.tensor(scope, name) for name in names]

    def attributes(self, node: int) -> list[tuple[str, str]]:
        own = self.own.get(node)
        if own is None:
            return self._base.attributes(node)
        parts = [attribute.SerializeToString() for attribute in own.attribute]
        return [attribute_text(data, (0, len(data))) for data in parts]

    def has(self, node: int) -> bool:
        """Whether this state has the node of that number."""
        return node in self.own or (node < self._base.n_nodes and bool(self._alive[node]))

    def with_ghosts(self, before: "Overlay", removed: Iterable[int]) -> "Overlay":
        """The same with the nodes `removed` of another state between the others, to look at."""
        ghosts = list(removed)
        shown = copy(self)
        shown.own = {**self.own, **{node: before.own[node] for node in ghosts if node in before.own}}
        shown._scope_of = {**before._scope_of, **self._scope_of}
        wanted = np.isin(before.order, ghosts)
        numbers = np.concatenate([self.order, before.order[wanted]])
        places = np.concatenate([self.places, before.places[wanted]])
        shown.order, shown.places = by_place(numbers, places)
        return shown

    def repeats(self) -> list[Repeat]:
        """As of the file, without blocks in which something is changed."""
        tokens, live = self._base.alike
        n_file, own, gone = self._base.n_nodes, self.own, self.gone
        mine = np.array([node >= n_file or node in own or node in gone for node in self.order.tolist()], np.bool_)
        at = np.where(mine, 0, self.order)
        tokens = np.where(mine, -1 - np.arange(mine.size), tokens[at])
        return find_repeats(tokens, self._name_at, np.append(live[at], 0))

    def _name_at(self, place: int) -> str:
        return self.node_name(int(self.order[place]))

    # Tensors

    def tensor_name(self, tensor: int) -> str:
        return self._base.tensor_name(tensor) if tensor < self._base.n_tensors else self.ground.new_tensor(tensor)[1]

    def tensor_scope(self, tensor: int) -> int:
        return self._base.tensor_scope(tensor) if tensor < self._base.n_tensors else self.ground.new_tensor(tensor)[0]

    def tensor_dtype(self, tensor: int) -> str:
        return self._type(tensor)[0]

    def tensor_shape(self, tensor: int) -> tuple[Dim, ...] | None:
        return self._type(tensor)[1]

    def _type(self, tensor: int) -> Type:
        scope, name, graph = self.tensor_scope(tensor), self.tensor_name(tensor), self._holder(tensor)
        if graph is not None:
            if scope == MAIN and name in self.types:
                return self.types[name]
            weight = graph.initializers.get(name)
            if weight is not None:
                return dtype_name(weight.data_type), tuple(weight.dims)
            said, old = graph.value(name), self.ground.graph(scope)
            if said is not None and (old is None or said != old.value(name)):
                data = said.SerializeToString()
                value = read_value(data, 0, len(data))
                return value.kind, value.shape
        base = self._base
        return (base.tensor_dtype(tensor), base.tensor_shape(tensor)) if tensor < base.n_tensors else ("", None)

    def tensor_kind(self, tensor: int) -> str:
        graph = self._holder(tensor)
        if graph is None:
            return self._base.tensor_kind(tensor)
        name = self.tensor_name(tensor)
        inputs, outputs = self._ends_of(self.tensor_scope(tensor), graph)
        if name in inputs:
            return "input"
        if name in graph.initializers:
            return "initializer"
        if name not in graph.lookups.makers:
            return "missing"
        return "output" if name in outputs else "node"

    def _ends_of(self, scope: int, graph: "Graph") -> tuple[set[str], set[str]]:
        """Names of a graph's inputs and outputs."""
        if scope not in self._ends:
            self._ends[scope] = set(graph.input_names), set(graph.output_names)
        return self._ends[scope]

    def is_output(self, tensor: int) -> bool:
        graph = self._holder(tensor)
        if graph is None:
            return self._base.is_output(tensor)
        return self.tensor_name(tensor) in self._ends_of(self.tensor_scope(tensor), graph)[1]

    def producer(self, tensor: int) -> int:
        graph = self._holder(tensor)
        if graph is None:
            return self._base.producer(tensor)
        maker = graph.lookups.makers.get(self.tensor_name(tensor))
        return -1 if maker is None else self.number(maker)

    def consumers(self, tensor: int) -> Numbers:
        name, base, changed = self.tensor_name(tensor), self._base, {MAIN: self.state, **self._inner.graphs}
        found: set[int] = set()
        for scope, graph in changed.items():
            readers = graph.lookups.readers.get(name, ())
            if readers and self._inner.tensor(scope, name) == tensor:
                found.update(map(self.number, readers))
        if tensor < base.n_tensors and len(base.meta["scopes"]) > 1:
            inner = base.consumers(tensor).tolist()
            found.update(n for n in inner if base.node_scope(n) not in changed and self._alive[n])
        return np.array(sorted(found), np.int32)

    def weight(self, tensor: int) -> tuple[str, int, int] | None:
        scope, name = self.tensor_scope(tensor), self.tensor_name(tensor)
        graph, old = self._holder(tensor), self.ground.graph(scope)
        held = None if graph is None else graph.initializers.get(name)
        if graph is None or (old is not None and held is old.initializers.get(name)):
            return self._base.weight(tensor) if tensor < self._base.n_tensors else None
        return None if held is None else ("", 0, nbytes(held))

    # Ways through the graph

    def parents(self, node: int) -> list[int]:
        read = [*self.node_inputs(node), *self.node_captures(node)]
        return sorted({self.producer(tensor) for tensor in read if tensor >= 0} - {-1})

    def children(self, node: int) -> list[int]:
        made = [tensor for tensor in self.node_outputs(node) if tensor >= 0]
        return sorted({int(reader) for tensor in made for reader in self.consumers(tensor)})

    def ancestors(self, node: int) -> Numbers:
        return self._reached(node, self.parents)

    def descendants(self, node: int) -> Numbers:
        return np.flatnonzero(self.reach(self.children(node))).astype(np.int32)

    def reach(self, nodes: Iterable[int]) -> NDArray[np.bool_]:
        """Mask over node numbers: `nodes`, and all that depend on them."""
        at, below = self.ground.below
        more: dict[int, list[int]] = {}
        for own in self.own:
            for parent in self.parents(own):
                more.setdefault(parent, []).append(own)
        seen, n_file = bytearray(self.n_nodes), self._base.n_nodes
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            if seen[node] or node in self.gone:
                continue
            seen[node] = 1
            if node < n_file and node not in self.own:
                waiting += below[at[node] : at[node + 1]]
                waiting += more.get(node, ())
            else:
                waiting += self.children(node)
        return np.frombuffer(seen, np.uint8).astype(np.bool_)

    def _reached(self, node: int, step: Any) -> Numbers:
        seen: set[int] = set()
        waiting = step(node)
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                waiting += step(number)
        return np.array(sorted(seen), np.int32)

    # Finding

    def find_node(self, name: str) -> int:
        for graph in (self.state, *self._inner.graphs.values()):
            named = graph.lookups.by_name.get(name, ())
            if named:
                return self.number(named[0])
        kept = (node for node in self._base.nodes_named(name) if self.has(node) and node not in self.own)
        return next(kept, -1) if name else -1

    def find_tensor(self, name: str) -> int:
        scopes = (MAIN, *self._inner.graphs)
        known = [self.ground.known_tensor(name, scope) for scope in scopes]
        known += [tensor for tensor in self._base.tensors_named(name) if self._base.tensor_scope(tensor) not in scopes]
        return next((t for t in known if t >= 0 and self.tensor_kind(t) != "missing"), -1)

    def search(self, query: str) -> Numbers:
        """As an index's, in the order in which nodes are shown."""
        found = set(self._base.search(query).tolist()) - self.own.keys()
        found |= {number for number in self.own if self._matches(number, query)}
        return self.order[np.isin(self.order, list(found))]

    def _matches(self, node: int, query: str) -> bool:
        return all(self._has(node, field, text.lower()) != negated for negated, field, text in terms(query))

    def _has(self, node: int, field: str, text: str) -> bool:
        return any(text in said.lower() for said in self._said(node, field))

    def _said(self, node: int, field: str) -> Iterator[str]:
        if field in ("", "op"):
            yield self.node_op(node)
        if field in ("", "name"):
            yield self.node_name(node)
        for tensor in self.node_outputs(node):
            if tensor >= 0 and field in ("", "dtype"):
                yield self.tensor_name(tensor) if not field else self.tensor_dtype(tensor)
