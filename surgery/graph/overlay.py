"""A changed graph on top of the index of its file, displayed immediately whatever its size.

Nodes of the file keep their numbers, even if changed; new ones are numbered after the file's, identically in every
state of the graph. A state costs time proportional to the changes, plus one pass over the nodes' identities.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.model.record_values import read_value
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.surgery.graph.index import Dim, Numbers
from layerwise._tool.surgery.graph.numbering import MAIN, NOTHING
from layerwise._tool.surgery.graph.overlay_nodes import OverlayNodes, Type, by_place
from layerwise._tool.surgery.graph.repeats import Repeat, find_repeats
from layerwise._tool.surgery.graph.search import terms

if TYPE_CHECKING:
    from typing_extensions import Self

    from layerwise._tool.surgery.graph.modules import Modules
    from layerwise._tool.surgery.model.graph_value import Graph


class OverlayTensors(OverlayNodes):
    """One state of the graph; this part knows its tensors."""

    def _holder(self, tensor: int) -> "Graph | None":
        """Return the graph that defines a tensor, None if the file's index does."""
        scope = self.tensor_scope(tensor)
        found = self._changed(scope)
        return found if tensor < self._base.n_tensors else found or self.numbering.graph(scope) or NOTHING

    def tensor_name(self, tensor: int) -> str:
        return self._base.tensor_name(tensor) if tensor < self._base.n_tensors else self.numbering.new_tensor(tensor)[1]

    def tensor_scope(self, tensor: int) -> int:
        base = self._base
        return base.tensor_scope(tensor) if tensor < base.n_tensors else self.numbering.new_tensor(tensor)[0]

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
            said, old = graph.value(name), self.numbering.graph(scope)
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
        """Return names of a graph's inputs and outputs."""
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
        graph, old = self._holder(tensor), self.numbering.graph(scope)
        held = None if graph is None else graph.initializers.get(name)
        if graph is None or (old is not None and held is old.initializers.get(name)):
            return self._base.weight(tensor) if tensor < self._base.n_tensors else None
        if held is None:
            return None
        from layerwise._tool.surgery.model.proto import stored_bytes

        return "", 0, stored_bytes(held)


class Overlay(OverlayTensors):
    """One state of the graph, with the interface of an index."""

    def with_removed(self, before: "Self", removed: Iterable[int]) -> "Self":
        """The same with the nodes `removed` of another state between the others, to look at."""
        gone = list(removed)
        shown = copy(self)
        shown.own = {**self.own, **{node: before.own[node] for node in gone if node in before.own}}
        shown._scope_of = {**before._scope_of, **self._scope_of}
        wanted = np.isin(before.order, gone)
        numbers = np.concatenate([self.order, before.order[wanted]])
        places = np.concatenate([self.places, before.places[wanted]])
        shown.order, shown.places = by_place(numbers, places)
        return shown

    def repeats(self) -> list[Repeat]:
        """Return the repeats of the file, without blocks that contain changes."""
        tokens, live = self._base.alike
        n_file, own, gone = self._base.n_nodes, self.own, self.gone
        mine = np.array([node >= n_file or node in own or node in gone for node in self.order.tolist()], np.bool_)
        at = np.where(mine, 0, self.order)
        tokens = np.where(mine, -1 - np.arange(mine.size), tokens[at])
        return find_repeats(tokens, self._name_at, np.append(live[at], 0))

    def _name_at(self, place: int) -> str:
        return self.node_name(int(self.order[place]))

    def modules(self) -> "Modules | None":
        """Those of the file's nodes; of new ones nothing is known."""
        return self._base.modules()

    # Ways through the graph

    def parents(self, node: int) -> list[int]:
        read = [*self.node_inputs(node), *self.node_captures(node)]
        return sorted({self.producer(tensor) for tensor in read if tensor >= 0} - {-1})

    def children(self, node: int) -> list[int]:
        made = [tensor for tensor in self.node_outputs(node) if tensor >= 0]
        return sorted({int(reader) for tensor in made for reader in self.consumers(tensor)})

    def reach(self, nodes: Iterable[int]) -> NDArray[np.bool_]:
        """Return a mask over node numbers: `nodes`, and all that depend on them."""
        at, below = self.numbering.below
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
        known = [self.numbering.known_tensor(name, scope) for scope in scopes]
        known += [tensor for tensor in self._base.tensors_named(name) if self._base.tensor_scope(tensor) not in scopes]
        return next((t for t in known if t >= 0 and self.tensor_kind(t) != "missing"), -1)

    def search(self, query: str) -> Numbers:
        """As for an index, in display order."""
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
        if field == "module" and (modules := self.modules()) is not None:
            yield f"{modules.text(node)}."
        for tensor in self.node_outputs(node):
            if tensor >= 0 and field in ("", "dtype"):
                yield self.tensor_name(tensor) if not field else self.tensor_dtype(tensor)
