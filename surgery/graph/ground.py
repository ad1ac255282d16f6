"""What all states of one edited model share: its index, its structure as the file has it, numbers for what is new."""

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx

from layerwise._tool.surgery.graph.index import GraphIndex
from layerwise._tool.surgery.model.structure import Graph, function_name

if TYPE_CHECKING:
    from layerwise._tool.surgery.model.structure import Structure

MAIN = 0
NOTHING = Graph.of(onnx.GraphProto())
"""A graph without anything, for what stands nowhere any more."""


class Place(NamedTuple):
    """Where a scope stands. owner: -1 for a function, whose name the attribute is; turn: among its owner's bodies."""

    owner: int
    attribute: str
    turn: int


class Ground:
    """Numbers of nodes, tensors and scopes; what is not the file's gets numbers after the file's."""

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
        """The number of a node that is not the file's: that of a node of its name, or that made the same, in any state.

        free: the file's nodes there that have no place yet; used: numbers of other new nodes.
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
        """The file's node of that name in a scope, -1 for none."""
        found = self.index.nodes_named(name) if name else []
        return next((node for node in found if self.index.node_scope(node) == scope), -1)

    def _maker(self, scope: int, name: str) -> int:
        tensor = self._file_tensor(scope, name)
        return self.index.producer(tensor) if tensor >= 0 else -1

    def proto(self, node: int) -> onnx.NodeProto | None:
        """One of the file's nodes as a proto."""
        if node >= self.index.n_nodes:
            return None
        graph = self.graph(self.index.node_scope(node))
        return None if graph is None else graph.nodes[self.index.node_position(node)]

    def after(self, node: int) -> int:
        """The last of the file's nodes inside one of its nodes, itself where it has no bodies."""
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
        """For each of the file's nodes the main graph or the function that it stands in, at any depth."""
        roots = np.zeros(len(self.places), np.int64)
        for number, place in enumerate(self.places):
            roots[number] = number if place.owner < 0 else roots[self.index.node_scope(place.owner)]
        return np.asarray(roots[self.index.node_scopes])

    @cached_property
    def below(self) -> tuple[list[int], list[int]]:
        """The children of the file's nodes: where each node's begin, and all of them."""
        return self.index.children_lists()

    # Scopes

    def scope_number(self, place: Place) -> int:
        """The number of the scope at a place, a new one if need be."""
        if place not in self._scopes:
            self._scopes[place] = len(self.places)
            self.places.append(place)
        return self._scopes[place]

    def graph(self, scope: int) -> Graph | None:
        """A graph as the file has it, None where the file has no such scope."""
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
        """The number of a tensor of a scope, a new one if need be; -1 for an absent one."""
        if not name:
            return -1
        number = self.known_tensor(name, scope)
        if number < 0:
            number = self._new_tensors[scope, name] = self.index.n_tensors + len(self._tensors)
            self._tensors.append((scope, name))
        return number

    def known_tensor(self, name: str, scope: int = MAIN) -> int:
        """As `tensor_number`, -1 for a name never seen there."""
        number = self._file_tensor(scope, name)
        return number if number >= 0 else self._new_tensors.get((scope, name), -1)

    def _file_tensor(self, scope: int, name: str) -> int:
        found = self.index.tensors_named(name) if name else []
        return next((tensor for tensor in found if self.index.tensor_scope(tensor) == scope), -1)

    def new_tensor(self, number: int) -> tuple[int, str]:
        """Scope and name of a tensor that the file does not have."""
        return self._tensors[number - self.index.n_tensors]

    @property
    def n_tensors(self) -> int:
        """The file's, and all new ones so far."""
        return self.index.n_tensors + len(self._tensors)

    def weight_bytes(self, state: "Structure") -> int:
        """Bytes of all weights of a state; what it shares with the file is counted once for all."""
        if self._weight_bytes < 0:
            self._weight_bytes = sum(map(nbytes, self.structure.initializers.values()))
        old, new = self.structure.initializers, state.initializers
        if new is old:
            return self._weight_bytes
        gone = sum(nbytes(tensor) for name, tensor in old.items() if new.get(name) is not tensor)
        return self._weight_bytes - gone + sum(nbytes(t) for name, t in new.items() if old.get(name) is not t)


def bodies_of(node: onnx.NodeProto, number: int) -> list[tuple[Place, onnx.GraphProto]]:
    """The bodies of the node with that number, each with its place."""
    found = []
    for attribute in node.attribute:
        bodies = [attribute.g] if attribute.HasField("g") else attribute.graphs
        found += [(Place(number, attribute.name, turn), body) for turn, body in enumerate(bodies)]
    return found


def nbytes(tensor: onnx.TensorProto) -> int:
    """Bytes of a weight, wherever they lie."""
    length = next((entry.value for entry in tensor.external_data if entry.key == "length"), "")
    return int(length) if length.isdecimal() else tensor.ByteSize()


def _places(index: GraphIndex) -> list[Place]:
    seen: dict[tuple[int, str], int] = {}
    found = []
    for scope in index.meta["scopes"]:
        attribute = scope["name"] if scope["kind"] == "function" else scope["attribute"]
        turn = seen[scope["owner"], attribute] = seen.get((scope["owner"], attribute), -1) + 1
        found.append(Place(scope["owner"], attribute, turn))
    return found
