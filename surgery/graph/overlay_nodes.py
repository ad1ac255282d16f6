"""The nodes of a changed graph: the file's by their numbers, followed by new ones."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from layerwise._tool.backends.model.reads import captures, subgraphs
from layerwise._tool.surgery.graph.attribute_text import attribute_text
from layerwise._tool.surgery.graph.index import Dim, GraphIndex, Numbers
from layerwise._tool.surgery.graph.inner import Inner
from layerwise._tool.surgery.graph.numbering import MAIN, Numbering
from layerwise._tool.surgery.model.lookups import difference

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.surgery.model.graph_value import Graph
    from layerwise._tool.surgery.model.structure import Structure

Type = tuple[str, tuple[Dim, ...] | None]
Places = NDArray[np.float64]
_STEP, _INNER_STEP = 1e-6, 1e-9


class OverlayNodes(GraphIndex):
    """One state of the graph; this part knows its nodes, bodies and functions.

    own: nodes that differ from the file, by number. gone: the file's nodes that were removed. places: sort key of each
    node of `order`. types: known types of the main graph's tensors in addition to declared ones.
    """

    def __init__(self, numbering: Numbering, state: "Structure", types: Mapping[str, Type] | None = None) -> None:
        self.numbering, self.state, self.types = numbering, state, dict(types or {})
        self._base = numbering.index
        self.folder = numbering.index.folder
        self.own: dict[int, onnx.NodeProto] = {}
        self._numbers: dict[int, int] = {}
        alive = self._take_main()
        self._inner = Inner(numbering, state, self.own)
        self.own |= {number: self._inner.protos[number] for number in self._inner.own}
        self._scope_of = dict(self._inner.own)
        self._drop_inner(alive)
        self._alive = alive
        self.gone = set(np.flatnonzero(~alive).tolist())
        self.order, self.places = in_order(self, alive)
        self.n_nodes, self.n_tensors = numbering.n_nodes, numbering.n_tensors
        self._ends = {MAIN: (set(state.input_names), set(state.output_names))}
        self.meta = self._described()

    def _take_main(self) -> NDArray[np.bool_]:
        """Number the main graph's new nodes; return which of the file's nodes remain."""
        numbering = self.numbering
        lost, new = difference(numbering.structure.nodes, self.state.nodes)
        free = {numbering.numbers[id(node)] for node in lost}
        for node in new:
            number = self._numbers[id(node)] = numbering.node_number(node, MAIN, free, self.own)
            free.discard(number)
            if numbering.proto_of.get(number) != node:
                self.own[number] = node
        alive = np.ones(self._base.n_nodes, np.bool_)
        alive[list(free)] = False
        return alive

    def _drop_inner(self, alive: NDArray[np.bool_]) -> None:
        """Remove the nodes of bodies whose owner was removed, and removed nodes of changed bodies."""
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
        for number, place in enumerate(self.numbering.places[len(scopes) :], len(scopes)):
            kind = "function" if place.owner < 0 else "body"
            scopes.append({"kind": kind, "name": place.attribute, "attribute": place.attribute, "parent": MAIN,
                           "owner": place.owner, "inputs": [], "outputs": [], "n_nodes": 0})  # fmt: skip
            if place.owner >= 0:
                scopes[number]["parent"] = self.node_scope(place.owner) if self.has(place.owner) else MAIN
        for number, graph in self._inner.graphs.items():
            scopes[number] = {**scopes[number], "inputs": graph.input_names, "outputs": graph.output_names,
                              "n_nodes": len(graph.nodes)}  # fmt: skip
        return {**base, "inputs": state.input_names, "outputs": state.output_names, "opsets": dict(state.opsets),
                "n_nodes": len(self.order), "weight_bytes": self.numbering.weight_bytes(state),
                "scopes": scopes}  # fmt: skip

    # Graphs

    def graph(self, scope: int) -> "Graph":
        """Return the main graph, a body or a function of this state. KeyError if there is none."""
        if scope == MAIN:
            return self.state
        found = self._inner.graphs.get(scope) or self.numbering.graph(scope)
        if found is None:
            raise KeyError(scope)
        return found

    def _changed(self, scope: int) -> "Graph | None":
        """Like `graph`, but None for a body or function that equals the file's."""
        return self.state if scope == MAIN else self._inner.graphs.get(scope)

    def bodies(self, node: int) -> list[int]:
        live = self._inner.live
        return [scope for scope in super().bodies(node) if self.has(node) and (node not in self.own or scope in live)]

    def scope_nodes(self, scope: int) -> Numbers:
        return self.order[[self.node_scope(node) == scope for node in self.order.tolist()]]

    # Nodes

    def number(self, node: "onnx.NodeProto") -> int:
        """Return the number of a node of the main graph or of a changed body or function, -1 for any other."""
        own = self._numbers.get(id(node), -1)
        own = own if own >= 0 else self.numbering.numbers.get(id(node), -1)
        return own if own >= 0 else self._inner.number(node)

    def proto(self, node: int) -> "onnx.NodeProto | None":
        """Return a node of this state, or of the file, as a proto."""
        return self.own.get(node) or self._inner.protos.get(node) or self.numbering.proto(node)

    def label(self, node: int) -> str:
        """Return the name by which edits of the node's graph find it."""
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
        """Return whether this state has the node with that number."""
        return node in self.own or (node < self._base.n_nodes and bool(self._alive[node]))


def in_order(overlay: OverlayNodes, alive: NDArray[np.bool_]) -> tuple[Numbers, Places]:
    """Return the file's nodes in the order of the index, new ones right after what they read or before their readers.

    alive: which of the file's nodes remain. Returns the nodes, and their sort keys.
    """
    keys = _Keys(overlay)
    for number, node in overlay.own.items():
        if number >= alive.size:
            keys.add(number, node)
    file = np.flatnonzero(alive)
    if not keys.of:
        return file.astype(np.int32), file.astype(np.float64)
    numbers = np.concatenate([file, np.fromiter(keys.of, np.int64, len(keys.of))])
    return by_place(numbers, np.concatenate([file, np.fromiter(keys.of.values(), np.float64, len(keys.of))]))


def by_place(numbers: NDArray[Any], places: Places) -> tuple[Numbers, Places]:
    """Return nodes and their sort keys, sorted."""
    order = np.argsort(places, kind="stable")
    return numbers[order].astype(np.int32), places[order]


class _Keys:
    """Sort keys of the new nodes, between the numbers of the file's nodes."""

    def __init__(self, overlay: OverlayNodes) -> None:
        self._overlay, self._n_file = overlay, overlay.numbering.index.n_nodes
        self.of: dict[int, float] = {}

    def add(self, number: int, node: "onnx.NodeProto") -> None:
        scope = self._overlay.node_scope(number)
        graph, step = self._overlay.graph(scope), _INNER_STEP if scope else _STEP
        step *= len(self.of) + 1
        above = self._above(graph, node)
        if above:
            self.of[number] = max(above) + step
        else:
            below = self._below(graph, node)
            self.of[number] = min(below) - step if below else self._start(scope) + step

    def _above(self, graph: "Graph", node: "onnx.NodeProto") -> list[float]:
        """Return the position after everything it reads."""
        makers = (graph.lookups.makers.get(name) for name in node.input)
        numbers = (self._overlay.number(maker) for maker in makers if maker is not None)
        return [self._end(number) for number in numbers if number < self._n_file or number in self.of]

    def _below(self, graph: "Graph", node: "onnx.NodeProto") -> list[int]:
        """Return the file's nodes that read its outputs."""
        readers = (reader for name in node.output for reader in graph.lookups.readers.get(name, ()))
        return [number for number in map(self._overlay.number, readers) if 0 <= number < self._n_file]

    def _end(self, number: int) -> float:
        return self.of[number] if number in self.of else float(self._overlay.numbering.after(number))

    def _start(self, scope: int) -> float:
        """Return the position of unconnected nodes: after the main graph, or first in a body or function."""
        numbering = self._overlay.numbering
        nodes = numbering.index.scope_nodes(scope)
        if not scope:
            return float(numbering.after(int(nodes[-1]))) if nodes.size else -1.0
        owner = numbering.places[scope].owner
        if owner >= 0:
            return self.of.get(owner, float(owner))
        return float(nodes[0]) - 0.5 if nodes.size else float(self._n_file + scope)
