"""The changed bodies and functions of a state: graphs, and numbers of the nodes in them."""

from typing import TYPE_CHECKING

from layerwise._tool.surgery.graph.numbering import MAIN, Numbering, ScopeLocation, bodies_of
from layerwise._tool.surgery.model.structure import Graph, function_name

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.surgery.model.structure import Structure


class Inner:
    """graphs: changed scopes, outer ones first, not the main graph. owners: whose bodies they are, -1 for functions.

    protos: their nodes by number; own: those that differ from the file, with their scope. live: the bodies of all
    changed nodes, and the functions. A changed body's owner is always a changed node.
    """

    def __init__(self, numbering: Numbering, state: "Structure", own: "dict[int, onnx.NodeProto]") -> None:
        self._numbering = numbering
        self.graphs: dict[int, Graph] = {}
        self.owners: dict[int, int] = {}
        self._numbers: dict[int, int] = {}
        self.protos: dict[int, onnx.NodeProto] = {}
        self.own: dict[int, int] = {}
        self.live: set[int] = set()
        self._used: set[int] = set()
        for number, node in own.items():
            self._take_bodies(number, node, state)
        self.functions = state.functions is not numbering.structure.functions
        if self.functions:
            self._take_functions(state)

    def _take_functions(self, state: "Structure") -> None:
        known = {id(function) for function in self._numbering.structure.functions}
        turns: dict[str, int] = {}
        for function in state.functions:
            name = function_name(function)
            turns[name] = turns.get(name, -1) + 1
            scope = self._numbering.scope_number(ScopeLocation(-1, name, turns[name]))
            self.live.add(scope)
            if id(function) not in known:
                self._take(scope, -1, Graph.of_function(function))

    def _take_bodies(self, owner: int, node: "onnx.NodeProto", outer: Graph) -> None:
        bodies = bodies_of(node, owner)
        old = self._numbering.proto(owner) if bodies else None
        before = dict(bodies_of(old, owner)) if old is not None else {}
        for place, body in bodies:
            scope = self._numbering.scope_number(place)
            self.live.add(scope)
            if before.get(place) != body:
                self._take(scope, owner, Graph.of(body, outer))

    def _take(self, scope: int, owner: int, graph: Graph) -> None:
        """Number the nodes of a changed graph, and process the bodies of those that differ."""
        self.graphs[scope], self.owners[scope] = graph, owner
        free, rest = self._kept(scope, graph)
        for node in rest:
            number = self._numbering.node_number(node, scope, free, self._used)
            free.discard(number)
            self._number(node, number)
            old = self._numbering.proto(number)
            if old != node:
                self.own[number] = scope
                self._take_bodies(number, node, graph)

    def _kept(self, scope: int, graph: Graph) -> "tuple[set[int], list[onnx.NodeProto]]":
        """Number the nodes that are equal to the file's; return the file's other nodes there, and those left over."""
        old = self._numbering.graph(scope)
        free = {} if old is None else dict(zip(_positions(self._numbering, scope), old.nodes, strict=True))
        by_output = {next(filter(None, node.output), ""): number for number, node in free.items()}
        rest = []
        for node in graph.nodes:
            number = by_output.get(next(filter(None, node.output), ""), -1)
            if free.get(number) == node:
                del free[number]
                self._number(node, number)
            else:
                rest.append(node)
        return set(free), rest

    def _number(self, node: "onnx.NodeProto", number: int) -> None:
        self._numbers[id(node)], self.protos[number] = number, node
        self._used.add(number)

    def number(self, node: "onnx.NodeProto") -> int:
        """Return the number of a node of the changed graphs, -1 for any other."""
        return self._numbers.get(id(node), -1)

    def tensor(self, scope: int, name: str) -> int:
        """Return the tensor that a name refers to in a changed graph or the main one, -1 for an omitted one."""
        at = scope
        while name and at > MAIN:
            graph = self.graphs.get(at)
            if graph is None or graph.defines(name) or self.owners[at] < 0:
                return self._numbering.tensor_number(name, at)
            at = self.own.get(self.owners[at], MAIN)
        return self._numbering.tensor_number(name)


def _positions(numbering: Numbering, scope: int) -> list[int]:
    """Return the file's nodes in a scope, in file order."""
    return sorted(numbering.index.scope_nodes(scope).tolist(), key=numbering.index.node_position)
