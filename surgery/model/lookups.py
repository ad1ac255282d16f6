"""Makers and readers of a graph's tensors, updated from one version to the next."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from functools import cached_property
from itertools import compress, count
from operator import is_not
from typing import Any, Generic, TypeVar, overload

import onnx

from layerwise._tool.backends.model.reads import reads, subgraphs
from layerwise._tool.surgery.model.proto import all_names

T = TypeVar("T")
V = TypeVar("V")
_GONE: Any = object()
_UNKNOWN: Any = object()
_WORTH_SHARING = 8  # one that differs in more than an eighth of its entries is copied completely
_BODY_KINDS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)
Nodes = tuple[onnx.NodeProto, ...]
Makers = MutableMapping[str, onnx.NodeProto]
Several = MutableMapping[str, Nodes]
_last: deque[tuple[Nodes, Nodes, tuple[list[onnx.NodeProto], list[onnx.NodeProto]]]] = deque(maxlen=2)
"""The last differences: one edit asks for the same one several times."""
_WORTH_CARRYING = 4  # a change of more than a quarter of the nodes is indexed from scratch


class Layered(MutableMapping[str, V], Generic[V]):
    """Entries that were set or deleted here, on top of a dict that others share and nobody changes."""

    def __init__(self, base: dict[str, V]) -> None:
        self._base = base
        self._own: dict[str, V] = {}

    def copy(self) -> "Layered[V]":
        """Return an independent table with the same entries."""
        if len(self._own) * _WORTH_SHARING > len(self._base):
            return Layered(dict(self))
        other = Layered(self._base)
        other._own = dict(self._own)
        return other

    @overload
    def get(self, key: str, /) -> V | None: ...

    @overload
    def get(self, key: str, /, default: T) -> V | T: ...

    def get(self, key: str, /, default: Any = None) -> Any:
        found = self._own.get(key, _UNKNOWN) if self._own else _UNKNOWN
        if found is _UNKNOWN:
            return self._base.get(key, default)
        return default if found is _GONE else found

    def __getitem__(self, key: str) -> V:
        found: V = self.get(key, _GONE)
        if found is _GONE:
            raise KeyError(key)
        return found

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self.get(key, _GONE) is not _GONE

    def __setitem__(self, key: str, value: V) -> None:
        self._own[key] = value

    def __delitem__(self, key: str) -> None:
        if key not in self:
            raise KeyError(key)
        self._own[key] = _GONE

    def __iter__(self) -> Iterator[str]:
        own: Mapping[str, Any] = self._own
        yield from (key for key in self._base if own.get(key) is not _GONE)
        yield from (key for key, value in own.items() if value is not _GONE and key not in self._base)

    def __len__(self) -> int:
        gone = sum(value is _GONE and key in self._base for key, value in self._own.items())
        return len(self._base) - gone + sum(v is not _GONE and k not in self._base for k, v in self._own.items())


class Lookups:
    """makers: tensor -> the first node that makes it. readers: tensor -> nodes that read it, captures of bodies
    included, each once, in no particular order. by_name: name -> nodes with it. bodied: nodes with bodies, by id.
    """

    def __init__(self, nodes: tuple[onnx.NodeProto, ...]) -> None:
        self.nodes = nodes
        makers: dict[str, onnx.NodeProto] = {}
        readers: dict[str, Nodes] = {}
        by_name: dict[str, Nodes] = {}
        self.bodied: dict[int, onnx.NodeProto] = {}
        self._add(nodes, makers, readers, by_name)
        self.makers, self.readers, self.by_name = Layered(makers), Layered(readers), Layered(by_name)

    def carried(self, nodes: tuple[onnx.NodeProto, ...]) -> "Lookups":
        """Return the lookups of `nodes`, which are mostly the same objects."""
        if nodes is self.nodes:
            return self
        gone, new = difference(self.nodes, nodes)
        if (len(gone) + len(new)) * _WORTH_CARRYING > len(nodes):
            return Lookups(nodes)
        other = Lookups(())
        other.nodes, other.makers, other.bodied = nodes, self.makers.copy(), dict(self.bodied)
        other.readers, other.by_name = self.readers.copy(), self.by_name.copy()
        other._remove(gone)
        other._add(new, other.makers, other.readers, other.by_name)
        return other

    @cached_property
    def inner_names(self) -> frozenset[str]:
        """Every tensor name inside the bodies of the graph's nodes."""
        return frozenset(name for node in self.bodied.values() for body in subgraphs(node) for name in all_names(body))

    def _add(self, nodes: Iterable[onnx.NodeProto], makers: Makers, readers: Several, by_name: Several) -> None:
        for node in nodes:
            if any(attribute.type in _BODY_KINDS for attribute in node.attribute):
                self.bodied[id(node)] = node
                names = reads(node)
            else:
                names = list(dict.fromkeys(node.input))
            for name in names:
                readers[name] = (*readers[name], node) if name in readers else (node,)
            for name in node.output:
                makers.setdefault(name, node)
            if node.name:
                by_name[node.name] = (*by_name[node.name], node) if node.name in by_name else (node,)
        makers.pop("", None)
        readers.pop("", None)

    def _remove(self, nodes: Iterable[onnx.NodeProto]) -> None:
        for node in nodes:
            self.bodied.pop(id(node), None)
            for name in reads(node):
                _drop(self.readers, name, node)
            for name in node.output:
                if self.makers.get(name) is node:
                    del self.makers[name]
            _drop(self.by_name, node.name, node)


def difference(old: Nodes, new: Nodes) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    """Return the nodes (objects) that only `old` has, and those that only `new` has."""
    if old is new:
        return [], []
    for entry in _last:
        if entry[0] is old and entry[1] is new:
            return entry[2]
    _last.appendleft((old, new, _difference(old, new)))
    return _last[0][2]


def _difference(old: Nodes, new: Nodes) -> tuple[list[onnx.NodeProto], list[onnx.NodeProto]]:
    start = _common(old, new)
    end = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - start)
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    old_ids, new_ids = set(map(id, old)), set(map(id, new))
    return [node for node in old if id(node) not in new_ids], [node for node in new if id(node) not in old_ids]


def _common(a: Nodes, b: Nodes) -> int:
    """Return the length of the common prefix of two tuples, by identity."""
    return next(compress(count(), map(is_not, a, b)), min(len(a), len(b)))


def _drop(table: Several, name: str, node: onnx.NodeProto) -> None:
    rest = tuple(other for other in table.get(name, ()) if other is not node)
    if rest:
        table[name] = rest
    else:
        table.pop(name, None)
