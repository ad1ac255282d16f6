"""One scope of an index (the main graph, a body, a function) as positions, links and tokens for the layout."""

from collections.abc import Hashable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.surgery.graph import GraphIndex
from layerwise._tool.surgery.graph.repeats import Repeat, crossing_of, find_repeats

OUTSIDE = -1


class ScopeGraph:
    """The nodes of one scope by position (topological). `reads[p]`: (tensor, position of its maker or OUTSIDE) of the
    node's inputs, captures included, without weights and omitted inputs.
    """

    def __init__(self, index: GraphIndex, scope: int, nodes: list[int], place: NDArray[np.int32]) -> None:
        """nodes: of this scope, ascending; place: node number -> its position in its scope."""
        self.index = index
        self.scope = scope
        self.nodes = nodes
        self._place = place
        self.reads = [self._links(node) for node in nodes]

    def __len__(self) -> int:
        return len(self.nodes)

    def _links(self, node: int) -> list[tuple[int, int]]:
        index, links = self.index, []
        for tensor in [*index.node_inputs(node), *index.node_captures(node)]:
            if tensor >= 0 and index.tensor_kind(tensor) != "initializer":
                links.append((tensor, self.maker(tensor)))
        return links

    def maker(self, tensor: int) -> int:
        """Return the position of the node here that makes a tensor, OUTSIDE if there is none."""
        node = self.index.producer(tensor)
        here = node >= 0 and self.index.node_scope(node) == self.scope
        return int(self._place[node]) if here else OUTSIDE

    def readers(self, tensor: int) -> list[int]:
        """Return positions of the nodes here that read a tensor."""
        found = [node for node in self.index.consumers(tensor).tolist() if self.index.node_scope(node) == self.scope]
        return [int(self._place[node]) for node in found]

    @cached_property
    def _tokens(self) -> NDArray[np.int64]:
        """Return a number per node: equal for nodes that do the same with weights of the same shape."""
        known: dict[Hashable, int] = {}
        return np.array([known.setdefault(self._token(node), len(known)) for node in self.nodes], np.int64)

    def _token(self, node: int) -> Hashable:
        index, op = self.index, self.index.node_op(node)
        reads = tuple(self._read_token(tensor) for tensor in index.node_inputs(node))
        attributes = () if op == "Constant" else tuple(index.attributes(node))
        return op, index.node_domain(node), len(index.node_outputs(node)), reads, attributes

    def _read_token(self, tensor: int) -> Hashable:
        if tensor < 0:
            return "absent"
        return self.index.tensor_shape(tensor) if self.index.tensor_kind(tensor) == "initializer" else "tensor"

    @cached_property
    def _crossing(self) -> NDArray[np.int64]:
        last = {maker: position for position, links in enumerate(self.reads) for _, maker in links if maker >= 0}
        first = np.fromiter(last, np.int64, len(last))
        return crossing_of(first, np.fromiter(last.values(), np.int64, len(last)), len(self))

    def repeats(self, start: int, end: int) -> list[Repeat]:
        """Return the equal pieces among positions start … end.

        Pieces are equal in their nodes, in the links among them, and in how they distinguish tensors from outside.
        """

        def name_at(place: int) -> str:
            return self.index.node_name(self.nodes[start + place])

        part = find_repeats(self._tokens[start:end], name_at, self._crossing[start : end + 1])
        whole = (Repeat(found.start + start, found.period, found.count) for found in part)
        return [equal for found in whole if (equal := self._linked_alike(found))]

    def _linked_alike(self, repeat: Repeat) -> Repeat | None:
        """Return as many pieces, from the first on, as have the same links; None if that is one."""
        found = pieces(repeat)
        first = self._links_within(found[0])
        count = next((k for k, piece in enumerate(found) if self._links_within(piece) != first), len(found))
        return Repeat(repeat.start, repeat.period, count) if count > 1 else None

    def _links_within(self, piece: range) -> list[list[int]]:
        """Return per node and read: the maker's position in the piece, or a negative number per tensor from outside."""
        outside: dict[int, int] = {}
        return [
            [
                maker - piece.start if maker in piece else outside.setdefault(tensor, ~len(outside))
                for tensor, maker in self.reads[position]
            ]
            for position in piece
        ]


def pieces(repeat: Repeat) -> list[range]:
    """Return the positions of each block of a repeat."""
    return [range(at, at + repeat.period) for at in range(repeat.start, repeat.end, repeat.period)]


def scope_graphs(index: GraphIndex) -> list[ScopeGraph]:
    """Return every scope of an index."""
    members: list[list[int]] = [[] for _ in index.meta["scopes"]]
    place = np.zeros(index.n_nodes, np.int32)
    for node in range(index.n_nodes):
        scope = index.node_scope(node)
        place[node] = len(members[scope])
        members[scope].append(node)
    return [ScopeGraph(index, scope, nodes, place) for scope, nodes in enumerate(members)]
