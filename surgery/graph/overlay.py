"""A changed graph laid over the index of the file it came from: shown at once, whatever the size of the graph.

Nodes of the file keep their numbers, changed ones too; new ones get numbers after the file's, the same ones in every
state of the graph. What a state costs grows with what was changed, besides one pass over the nodes' identities.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from backends.reads import reads
from backends.record_values import read_value
from backends.tensors import dtype_name
from surgery.graph.attribute_text import attribute_text
from surgery.graph.index import Dim, GraphIndex, Numbers
from surgery.graph.repeats import Repeat, find_repeats
from surgery.graph.search import terms

if TYPE_CHECKING:
    import onnx

    from surgery.structure import Structure

Type = tuple[str, tuple[Dim, ...] | None]
Places = NDArray[np.float64]
_STEP = 1e-6


class Ground:
    """What all states of one model share: its index, its structure as the file has it, and numbers for new nodes."""

    def __init__(self, index: GraphIndex, structure: "Structure") -> None:
        self.index, self.structure = index, structure
        nodes = index.main_nodes()
        numbers = np.zeros(len(structure.nodes), np.int64)
        for number in nodes.tolist():
            numbers[index.node_position(number)] = number
        self.numbers: dict[int, int] = {id(n): k for n, k in zip(structure.nodes, numbers.tolist(), strict=True)}
        self.proto_of = {number: node for node, number in zip(structure.nodes, numbers.tolist(), strict=True)}
        self.n_nodes = index.n_nodes
        self._named: dict[str, int] = {}
        self._making: dict[str, int] = {}
        self._new_tensors: dict[str, int] = {}
        self._tensor_names: list[str] = []
        self._weight_bytes = -1

    def node_number(self, node: "onnx.NodeProto", gone: set[int], used: Collection[int]) -> int:
        """The number of a node that is not the file's: that of a node of its name, or that made the same, in any state.

        gone: the file's nodes that have no place yet; used: numbers of other new nodes.
        """
        first = next(filter(None, node.output), "")
        tensor = self.index.find_tensor(first) if first else -1
        for number in (
            self.index.find_node(node.name) if node.name else -1,
            self.index.producer(tensor) if tensor >= 0 else -1,
            self._named.get(node.name, -1),
            self._making.get(first, -1),
        ):
            if number in gone or (number >= self.index.n_nodes and number not in used):
                return self._noted(node.name, first, number)
        self.n_nodes += 1
        return self._noted(node.name, first, self.n_nodes - 1)

    def _noted(self, name: str, first: str, number: int) -> int:
        self._named[name] = self._making[first] = number
        return number

    def tensor_number(self, name: str) -> int:
        """The number of a tensor of the main graph, a new one if need be; -1 for an absent one."""
        if not name:
            return -1
        number = self.known_tensor(name)
        if number < 0:
            number = self._new_tensors[name] = self.index.n_tensors + len(self._tensor_names)
            self._tensor_names.append(name)
        return number

    def known_tensor(self, name: str) -> int:
        """As `tensor_number`, -1 for a name never seen."""
        number = self.index.find_tensor(name)
        if number >= 0 and self.index.tensor_scope(number) == 0:
            return number
        return self._new_tensors.get(name, -1)

    def weight_bytes(self, state: "Structure") -> int:
        """Bytes of all weights of a state; what it shares with the file is counted once for all."""
        if self._weight_bytes < 0:
            self._weight_bytes = sum(map(_nbytes, self.structure.initializers.values()))
        old, new = self.structure.initializers, state.initializers
        if new is old:
            return self._weight_bytes
        gone = sum(_nbytes(tensor) for name, tensor in old.items() if new.get(name) is not tensor)
        return self._weight_bytes - gone + sum(_nbytes(t) for name, t in new.items() if old.get(name) is not t)

    @cached_property
    def below(self) -> tuple[list[int], list[int]]:
        """The children of the file's nodes: where each node's begin, and all of them."""
        return self.index.children_lists()

    def new_tensor(self, number: int) -> str:
        """The name of a tensor that the file does not have."""
        return self._tensor_names[number - self.index.n_tensors]


class Overlay(GraphIndex):
    """One state of the graph, with the interface of an index.

    own: nodes that are not as in the file, by number. gone: the file's nodes that are no more. places: for each node of
    `order` what it is sorted by. types: what is known of tensors' types besides what the graph says.
    """

    def __init__(self, ground: Ground, state: "Structure", types: Mapping[str, Type] | None = None) -> None:
        self.ground, self.state, self.types = ground, state, dict(types or {})
        self._base = base = ground.index
        self.folder = base.folder
        kept = list(map(ground.numbers.get, map(id, state.nodes)))
        new = [node for node, number in zip(state.nodes, kept, strict=True) if number is None]
        self.gone = ground.proto_of.keys() - set(kept)
        self.own: dict[int, onnx.NodeProto] = {}
        self._numbers: dict[int, int] = {}
        for node in new:
            number = self._numbers[id(node)] = ground.node_number(node, self.gone, self.own)
            self.gone.discard(number)
            if number not in ground.proto_of or ground.proto_of[number] != node:
                self.own[number] = node
        self.order, self.places = self._ordered(new)
        self.n_nodes, self.n_tensors = ground.n_nodes, base.n_tensors + len(ground._tensor_names)
        inputs, outputs = state.input_names, state.output_names
        self._inputs, self._outputs = set(inputs), set(outputs)
        self.meta = {**base.meta, "inputs": inputs, "outputs": outputs, "opsets": dict(state.opsets),
                     "n_nodes": len(self.order), "weight_bytes": ground.weight_bytes(state)}  # fmt: skip

    def _ordered(self, new: "Iterable[onnx.NodeProto]") -> tuple[Numbers, Places]:
        """The file's nodes as its index has them, new ones right after what they read or before what reads them."""
        base, readers = self._base, self.state.lookups.readers
        alive = np.ones(base.n_nodes, np.bool_)
        alive[list(self.gone)] = False
        self._drop_bodies(alive)
        self._alive = alive
        keys: dict[int, float] = {}
        for k, node in enumerate(new):
            number = self._numbers[id(node)]
            if number < base.n_nodes:
                continue
            above = [keys.get(n, float(n)) for n in map(self._maker, node.input) if n >= 0]
            below = [self.number(reader) for name in node.output for reader in readers.get(name, ())]
            known = [float(n) for n in below if 0 <= n < base.n_nodes]
            keys[number] = max(above) + _STEP * (k + 1) if above else min(known, default=float(base.n_nodes)) - _STEP
        numbers = np.concatenate([np.flatnonzero(alive), np.fromiter(keys, np.int64, len(keys))])
        places = np.concatenate([np.flatnonzero(alive), np.fromiter(keys.values(), np.float64, len(keys))])
        return _sorted(numbers, places)

    def _drop_bodies(self, alive: NDArray[np.bool_]) -> None:
        """The nodes of bodies go with their owner, and where they are edited themselves: they have no numbers then."""
        scopes = self._base.meta["scopes"]
        if len(scopes) < 2:
            return
        lost = [False] * len(scopes)
        for number, scope in enumerate(scopes):
            owner = scope["owner"]
            gone = owner >= 0 and (not alive[owner] or self._has_other_body(owner))
            lost[number] = gone or (owner >= 0 and lost[self._base.node_scope(owner)])
        if any(lost):
            for node in range(self._base.n_nodes):
                alive[node] &= not lost[self._base.node_scope(node)]

    def _has_other_body(self, owner: int) -> bool:
        own, old = self.own.get(owner), self.ground.proto_of.get(owner)
        if own is None or old is None:
            return False
        bodies = [[a for a in node.attribute if a.HasField("g") or a.graphs] for node in (own, old)]
        return bodies[0] != bodies[1]

    # Nodes

    def number(self, node: "onnx.NodeProto") -> int:
        """The number of a node of this state, -1 for any other."""
        own = self._numbers.get(id(node), -1)
        return own if own >= 0 else self.ground.numbers.get(id(node), -1)

    def proto(self, node: int) -> "onnx.NodeProto | None":
        """A main graph node as a proto, None for nodes of bodies and functions."""
        return self.own.get(node) or self.ground.proto_of.get(node)

    def _maker(self, name: str) -> int:
        maker = self.state.lookups.makers.get(name)
        return -1 if maker is None else self.number(maker)

    def node_name(self, node: int) -> str:
        return self.own[node].name if node in self.own else self._base.node_name(node)

    def node_op(self, node: int) -> str:
        return self.own[node].op_type if node in self.own else self._base.node_op(node)

    def node_domain(self, node: int) -> str:
        return self.own[node].domain if node in self.own else self._base.node_domain(node)

    def node_scope(self, node: int) -> int:
        return 0 if node in self.own else self._base.node_scope(node)

    def node_position(self, node: int) -> int:
        return -1 if node in self.own else self._base.node_position(node)

    def node_inputs(self, node: int) -> list[int]:
        own = self.own.get(node)
        return self._base.node_inputs(node) if own is None else list(map(self.ground.tensor_number, own.input))

    def node_outputs(self, node: int) -> list[int]:
        own = self.own.get(node)
        return self._base.node_outputs(node) if own is None else list(map(self.ground.tensor_number, own.output))

    def node_captures(self, node: int) -> list[int]:
        own = self.own.get(node)
        if own is None:
            return self._base.node_captures(node)
        return [self.ground.tensor_number(name) for name in reads(own) if name not in own.input]

    def attributes(self, node: int) -> list[tuple[str, str]]:
        own = self.own.get(node)
        if own is None:
            return self._base.attributes(node)
        parts = [attribute.SerializeToString() for attribute in own.attribute]
        return [attribute_text(data, (0, len(data))) for data in parts]

    def main_nodes(self) -> Numbers:
        return self.order[[self.node_scope(int(node)) == 0 for node in self.order]]

    def has(self, node: int) -> bool:
        """Whether this state has the main graph node of that number."""
        return node in self.own or (node in self.ground.proto_of and node not in self.gone)

    def with_ghosts(self, before: "Overlay", removed: Iterable[int]) -> "Overlay":
        """The same with the nodes `removed` of another state between the others, to look at."""
        ghosts = list(removed)
        shown = copy(self)
        shown.own = {**self.own, **{node: before.own[node] for node in ghosts if node in before.own}}
        wanted = np.isin(before.order, ghosts)
        numbers = np.concatenate([self.order, before.order[wanted]])
        shown.order, shown.places = _sorted(numbers, np.concatenate([self.places, before.places[wanted]]))
        return shown

    def repeats(self) -> list[Repeat]:
        """As of the file, without blocks in which something is changed."""
        tokens, live = self._base.alike
        own = np.array([node >= self._base.n_nodes or node in self.own or node in self.gone for node in self.order])
        at = np.where(own, 0, self.order)
        return find_repeats(np.where(own, -1 - np.arange(own.size), tokens[at]), self._name_at, np.append(live[at], 0))

    def _name_at(self, place: int) -> str:
        return self.node_name(int(self.order[place]))

    # Tensors

    def tensor_name(self, tensor: int) -> str:
        return self._base.tensor_name(tensor) if tensor < self._base.n_tensors else self.ground.new_tensor(tensor)

    def tensor_dtype(self, tensor: int) -> str:
        return self._type(tensor)[0]

    def tensor_shape(self, tensor: int) -> tuple[Dim, ...] | None:
        return self._type(tensor)[1]

    def _type(self, tensor: int) -> Type:
        base, name = self._base, self.tensor_name(tensor)
        if tensor < base.n_tensors and base.tensor_scope(tensor):
            return base.tensor_dtype(tensor), base.tensor_shape(tensor)
        if name in self.types:
            return self.types[name]
        weight = self.state.initializers.get(name)
        if weight is not None:
            return dtype_name(weight.data_type), tuple(weight.dims)
        said = self.state.value(name)
        if said is not None and said is not self.ground.structure.value(name):
            data = said.SerializeToString()
            value = read_value(data, 0, len(data))
            return value.kind, value.shape
        return (base.tensor_dtype(tensor), base.tensor_shape(tensor)) if tensor < base.n_tensors else ("", None)

    def tensor_kind(self, tensor: int) -> str:
        if self.tensor_scope(tensor):
            return self._base.tensor_kind(tensor)
        name = self.tensor_name(tensor)
        if name in self._inputs:
            return "input"
        if name in self.state.initializers:
            return "initializer"
        if name not in self.state.lookups.makers:
            return "missing"
        return "output" if name in self._outputs else "node"

    def tensor_scope(self, tensor: int) -> int:
        return self._base.tensor_scope(tensor) if tensor < self._base.n_tensors else 0

    def is_output(self, tensor: int) -> bool:
        if self.tensor_scope(tensor):
            return self._base.is_output(tensor)
        return self.tensor_name(tensor) in self._outputs

    def producer(self, tensor: int) -> int:
        return self._base.producer(tensor) if self.tensor_scope(tensor) else self._maker(self.tensor_name(tensor))

    def consumers(self, tensor: int) -> Numbers:
        if self.tensor_scope(tensor):
            return self._base.consumers(tensor)
        found = [self.number(node) for node in self.state.lookups.readers.get(self.tensor_name(tensor), ())]
        if tensor < self._base.n_tensors and len(self._base.meta["scopes"]) > 1:
            inner = (int(node) for node in self._base.consumers(tensor) if self._base.node_scope(int(node)))
            found += [node for node in inner if self._alive[node]]
        return np.array(sorted(found), np.int32)

    def weight(self, tensor: int) -> tuple[str, int, int] | None:
        if self.tensor_scope(tensor) or self._as_in_file(self.tensor_name(tensor)):
            return self._base.weight(tensor)
        held = self.state.initializers.get(self.tensor_name(tensor))
        return None if held is None else ("", 0, _nbytes(held))

    def _as_in_file(self, name: str) -> bool:
        return self.state.initializers.get(name) is self.ground.structure.initializers.get(name)

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
        named = self.state.lookups.by_name.get(name, ())
        return self.number(named[0]) if named else -1

    def find_tensor(self, name: str) -> int:
        number = self.ground.known_tensor(name)
        return number if number >= 0 and self.tensor_kind(number) != "missing" else -1

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


def _sorted(numbers: NDArray[Any], places: Places) -> tuple[Numbers, Places]:
    order = np.argsort(places, kind="stable")
    return numbers[order].astype(np.int32), places[order]


def _nbytes(tensor: "onnx.TensorProto") -> int:
    """Bytes of a weight, wherever they lie."""
    length = next((entry.value for entry in tensor.external_data if entry.key == "length"), "")
    return int(length) if length.isdecimal() else tensor.ByteSize()
