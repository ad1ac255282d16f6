"""Shared by all states of an edited model: its index, its structure as in the file, numbers for new parts."""

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx

from layerwise._tool.surgery.graph.index import GraphIndex
from layerwise._tool.surgery.model.proto import stored_bytes
from layerwise._tool.surgery.model.structure import Graph, function_name

if TYPE_CHECKING:
    from layerwise._tool.surgery.model.structure import Structure

MAIN = 0
NOTHING = Graph.of(onnx.GraphProto())
"""A graph without anything, for what stands nowhere any more."""


class ScopeLocation(NamedTuple):
    """A scope's location. owner: -1 for a function, named by the attribute; turn: index among its owner's bodies."""

    owner: int
    attribute: str
    turn: int


class Numbering:
    """Numbers of nodes, tensors and scopes; new ones are numbered after the file's."""

    def __init__(self, index: GraphIndex, structure: "Structure") -> None:
        self.index, self.structure = index, structure
        numbers = np.zeros(len(structure.nodes), np.int64)
        for number in index.main_nodes().tolist():
            numbers[index.node_position(number)] = number
        self.numbers: dict[int, int] = {id(n): k for n, k in zip(structure.nodes, numbers.tolist(), strict=True)}
        self.proto_of = {number: node for node, number in zip(structure.nodes, numbers.tolist(), strict=True)}
        self.n_nodes = index.n_nodes
        self._named: dict[tuple[int, str], int] = {}
        self._making: dict[tuple[int, str], int] = {}
        self._new_tensors: dict[tuple[int, str], int] = {}
        self._tensors: list[tuple[int, str]] = []
        self.places = list(_places(index))
        self._scopes = {place: number for number, place in enumerate(self.places)}
        self._graphs: dict[int, Graph | None] = {MAIN: structure}
        self._weight_bytes = -1

    # Nodes

    def node_number(self, node: onnx.NodeProto, scope: int, free: Collection[int], used: Collection[int]) -> int:
        """Return the number of a new node: that of a node with the same name or outputs, in any state.

        free: the file's nodes in that scope not yet assigned; used: numbers of other new nodes.
        """
        first = next(filter(None, node.output), "")
        for number in (
            self._in_file(scope, node.name), self._maker(scope, first),
            self._named.get((scope, node.name), -1) if node.name else -1, self._making.get((scope, first), -1),
        ):  # fmt: skip
            if number in free or (number >= self.index.n_nodes and number not in used):
                return self._noted(scope, node.name, first, number)
        self.n_nodes += 1
        return self._noted(scope, node.name, first, self.n_nodes - 1)

    def _noted(self, scope: int, name: str, first: str, number: int) -> int:
        self._named[scope, name] = self._making[scope, first] = number
        return number

    def _in_file(self, scope: int, name: str) -> int:
        """Return the file's node with that name in a scope, -1 for none."""
        found = self.index.nodes_named(name) if name else []
        return next((node for node in found if self.index.node_scope(node) == scope), -1)

    def _maker(self, scope: int, name: str) -> int:
        tensor = self._file_tensor(scope, name)
        return self.index.producer(tensor) if tensor >= 0 else -1

    def proto(self, node: int) -> onnx.NodeProto | None:
        """Return one of the file's nodes as a proto."""
        if node >= self.index.n_nodes:
            return None
        graph = self.graph(self.index.node_scope(node))
        return None if graph is None else graph.nodes[self.index.node_position(node)]

    def after(self, node: int) -> int:
        """Return the last of the file's nodes inside one of its nodes, itself if it has no bodies."""
        if node not in self._owners:
            return node
        beside = self.index.scope_nodes(self.index.node_scope(node))
        later = int(np.searchsorted(beside, node, "right"))
        scope = self.index.node_scope(node)
        end = self.places[scope].owner
        if later < beside.size:
            return int(beside[later]) - 1
        if end >= 0:
            return self.after(end)
        return int(np.flatnonzero(self._belongs == self._belongs[node])[-1])

    @cached_property
    def _owners(self) -> frozenset[int]:
        return frozenset(place.owner for place in self.places) - {-1}

    @cached_property
    def _belongs(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Return for each of the file's nodes its main graph or function, at any depth."""
        roots = np.zeros(len(self.places), np.int64)
        for number, place in enumerate(self.places):
            roots[number] = number if place.owner < 0 else roots[self.index.node_scope(place.owner)]
        return np.asarray(roots[self.index.node_scopes])

    @cached_property
    def below(self) -> tuple[list[int], list[int]]:
        """Return the children of the file's nodes: where each node's begin, and all of them."""
        return self.index.children_lists()

    # Scopes

    def scope_number(self, place: ScopeLocation) -> int:
        """Return the number of the scope at a location, a new one if necessary."""
        if place not in self._scopes:
            self._scopes[place] = len(self.places)
            self.places.append(place)
        return self._scopes[place]

    def graph(self, scope: int) -> Graph | None:
        """Return a graph as in the file, None if the file has no such scope."""
        if scope not in self._graphs:
            self._graphs[scope] = self._taken(scope) if scope < len(self.index.meta["scopes"]) else None
        return self._graphs[scope]

    def _taken(self, scope: int) -> Graph | None:
        place = self.places[scope]
        if place.owner < 0:
            functions = {function_name(function): function for function in self.structure.functions}
            return Graph.of_function(functions[place.attribute]) if place.attribute in functions else None
        owner = self.proto(place.owner)
        bodies = dict(bodies_of(owner, place.owner)) if owner is not None else {}
        outer = self.graph(self.index.node_scope(place.owner))
        return Graph.of(bodies[place], outer) if place in bodies else None

    # Tensors

    def tensor_number(self, name: str, scope: int = MAIN) -> int:
        """Return the number of a tensor of a scope, a new one if necessary; -1 for an omitted one."""
        if not name:
            return -1
        number = self.known_tensor(name, scope)
        if number < 0:
            number = self._new_tensors[scope, name] = self.index.n_tensors + len(self._tensors)
            self._tensors.append((scope, name))
        return number

    def known_tensor(self, name: str, scope: int = MAIN) -> int:
        """Like `tensor_number`, but -1 for an unknown name."""
        number = self._file_tensor(scope, name)
        return number if number >= 0 else self._new_tensors.get((scope, name), -1)

    def _file_tensor(self, scope: int, name: str) -> int:
        found = self.index.tensors_named(name) if name else []
        return next((tensor for tensor in found if self.index.tensor_scope(tensor) == scope), -1)

    def new_tensor(self, number: int) -> tuple[int, str]:
        """Return scope and name of a tensor that the file does not have."""
        return self._tensors[number - self.index.n_tensors]

    @property
    def n_tensors(self) -> int:
        """Return the number of tensors: the file's, and all new ones so far."""
        return self.index.n_tensors + len(self._tensors)

    def weight_bytes(self, state: "Structure") -> int:
        """Return the bytes of all weights of a state; what it shares with the file is counted once for all."""
        if self._weight_bytes < 0:
            self._weight_bytes = sum(map(stored_bytes, self.structure.initializers.values()))
        old, new = self.structure.initializers, state.initializers
        if new is old:
            return self._weight_bytes
        gone = sum(stored_bytes(tensor) for name, tensor in old.items() if new.get(name) is not tensor)
        return self._weight_bytes - gone + sum(stored_bytes(t) for name, t in new.items() if old.get(name) is not t)


def bodies_of(node: onnx.NodeProto, number: int) -> list[tuple[ScopeLocation, onnx.GraphProto]]:
    """Return the bodies of the node with that number, each with its location."""
    found = []
    for attribute in node.attribute:
        bodies = [attribute.g] if attribute.HasField("g") else attribute.graphs
        found += [(ScopeLocation(number, attribute.name, turn), body) for turn, body in enumerate(bodies)]
    return found


def _places(index: GraphIndex) -> list[ScopeLocation]:
    seen: dict[tuple[int, str], int] = {}
    found = []
    for scope in index.meta["scopes"]:
        attribute = scope["name"] if scope["kind"] == "function" else scope["attribute"]
        turn = seen[scope["owner"], attribute] = seen.get((scope["owner"], attribute), -1) + 1
        found.append(ScopeLocation(scope["owner"], attribute, turn))
    return found
