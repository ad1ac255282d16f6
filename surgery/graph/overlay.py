"""A changed graph on top of the index of its file, displayed immediately whatever its size.

Nodes of the file keep their numbers, even if changed; new ones are numbered after the file's, identically in every
state of the graph. A state costs time proportional to the changes, plus one pass over the nodes' identities.
"""

from collections.abc import Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.graph.index import Numbers
from layerwise._tool.surgery.graph.numbering import MAIN
from layerwise._tool.surgery.graph.overlay_nodes import by_place
from layerwise._tool.surgery.graph.overlay_tensors import OverlayTensors
from layerwise._tool.surgery.graph.repeats import Repeat, find_repeats
from layerwise._tool.surgery.graph.search import terms

if TYPE_CHECKING:
    from typing_extensions import Self


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
        for tensor in self.node_outputs(node):
            if tensor >= 0 and field in ("", "dtype"):
                yield self.tensor_name(tensor) if not field else self.tensor_dtype(tensor)
