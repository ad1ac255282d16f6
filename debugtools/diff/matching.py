"""Which node of one graph is which node of another, in linear time, by structure first and by name where that fails.

A node is found from its inputs (same operator and attributes on tensors that correspond), from its readers (what makes
the corresponding input of a node already found), by its name, or because nothing else in either graph looks like it.
Numbered names that shift when a node is put in between do not mislead: structure goes first.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from layerwise._tool.debugtools.diff.graph_side import GraphSide, Signature

_Key = tuple[Signature, tuple[str, ...]]
_UNKNOWN = "\0"  # no tensor's name
_LOOK = 8  # nodes alike that are looked at for one whose names do not speak against it


class Matching:
    """Pairs of nodes. forth: node of `a` -> node of `b`; tensors: name in `a` -> name in `b`, as far as known.

    equal: of `b`'s tensors that hold the same, each -> the one that `tensors` names.
    """

    def __init__(
        self, a: GraphSide, b: GraphSide, tensors: Mapping[str, str], equal: Mapping[str, str] | None = None
    ) -> None:
        self.a, self.b = a, b
        self.equal = equal or {}
        self.tensors = {"": "", **tensors}
        self.forth: dict[int, int] = {}
        self.back: dict[int, int] = {}
        self._fresh: deque[tuple[int, int]] = deque()
        self._loose = False

    def same(self, x: str, y: str) -> bool:
        """Whether a tensor of `a` and one of `b` correspond."""
        return self.tensors.get(x) == self.equal.get(y, y)

    def run(self, align: "Callable[[Matching], object] | None" = None) -> None:
        """Find all pairs. align: what pairs nodes that structure leaves on both sides, before names do."""
        self._forward(strict=True)
        self._from_outputs()
        self._backward()
        if align is not None and not self._done:
            align(self)
            self._both_ways()
        self._by_name()
        self._both_ways()
        self._loose = True
        self._fresh.extend(self.forth.items())
        self._both_ways()
        self._by_likeness()
        self._both_ways()
        self._by_name()

    def take(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Take over pairs of tensors, and with them pairs of the nodes that make them."""
        for x, y in pairs:
            first, second = self.a.maker.get(x), self.b.maker.get(y)
            if first and second and first[1] == second[1] and self._free(first[0], second[0]):
                self._pair(first[0], second[0])
            if y in self.b.weights or second:
                self.tensors.setdefault(x, self.equal.get(y, y))

    def readings(self, i: int) -> Iterator[tuple[int, int, int]]:
        """The paired nodes that read a node's first output: themselves, their counterparts, and at which place."""
        name = next(iter(self.a.nodes[i].outputs), "")
        for reader in self.a.read_by.get(name, ()):
            slots = [slot for slot, read in enumerate(self.a.nodes[reader].inputs) if read == name]
            if reader in self.forth and len(slots) == 1:
                yield reader, self.forth[reader], slots[0]

    def maker_read(self, i: int, j: int, slot: int) -> int | None:
        """The node that makes what `j` reads at a place; None where its operator is another than that of `i`."""
        one, other = self.a.nodes[i], self.b.nodes[j]
        if one.op != other.op or slot >= len(other.inputs):
            return None
        maker = self.b.maker.get(other.inputs[slot])
        return maker[0] if maker and maker[1] == 0 else None

    def move(self, i: int, j: int) -> None:
        """Pair a node of `a` with another one of `b`, which is free."""
        self.back.pop(self.forth[i], None)
        for x, y in zip(self.a.nodes[i].outputs, self.b.nodes[j].outputs, strict=False):
            self.tensors[x] = y
        self.forth[i], self.back[j] = j, i

    def _both_ways(self) -> None:
        if not self._done:
            self._forward()
            self._backward()

    @property
    def _done(self) -> bool:
        return len(self.forth) in (len(self.a.nodes), len(self.b.nodes))

    def _pair(self, i: int, j: int) -> None:
        self.forth[i], self.back[j] = j, i
        self._fresh.append((i, j))
        for x, y in zip(self.a.nodes[i].outputs, self.b.nodes[j].outputs, strict=False):
            if x:
                self.tensors.setdefault(x, y)

    def _free(self, i: int, j: int) -> bool:
        return i not in self.forth and j not in self.back

    def _forward(self, *, strict: bool = False) -> None:
        """Pair nodes whose inputs correspond. strict: not under names that stand for others in the other graph."""
        waiting: dict[_Key, deque[int]] = {}
        for j in self.b.order:
            if j not in self.back:
                for key in self._keys_of(j):
                    waiting.setdefault(key, deque()).append(j)
        for i in self.a.order:
            if i in self.forth:
                continue
            inputs = tuple(self.tensors.get(name, _UNKNOWN) for name in self.a.nodes[i].inputs)
            if _UNKNOWN in inputs:
                continue
            for key in self._keys(self.a.signatures[i], inputs):
                chosen = self._choice(i, key, waiting.get(key), strict)
                if chosen is not None:
                    self._pair(i, chosen)
                    break

    def _keys(self, signature: Signature, inputs: tuple[str, ...]) -> list[_Key]:
        """What a node may be found under: operator and attributes; loosely, by the operator alone too."""
        exact = (signature, inputs)
        return [exact, (signature[:2], inputs)] if self._loose else [exact]

    def _keys_of(self, j: int) -> list[_Key]:
        return self._keys(self.b.signatures[j], tuple(self.equal.get(name, name) for name in self.b.nodes[j].inputs))

    def _choice(self, i: int, key: _Key, found: deque[int] | None, strict: bool) -> int | None:
        if not found:
            return None
        namesake = self.b.by_label.get(self.a.labels[i])
        if namesake is not None and namesake not in self.back and key in self._keys_of(namesake):
            return namesake
        while found and found[0] in self.back:
            found.popleft()
        look = islice(found, _LOOK)
        fitting = [j for j in look if j not in self.back and not (strict and self._others(i, j))]
        alike = (j for j in fitting if self.a.readers[i] == self.b.readers[j])
        return next(alike, fitting[0] if fitting else None)

    def _others(self, i: int, j: int) -> bool:
        """Whether the name of one, or of what it makes, stands for another node in the other graph."""
        return (
            self.b.by_label.get(self.a.labels[i], j) != j
            or self.a.by_label.get(self.b.labels[j], i) != i
            or self.b.maker.get(next(iter(self.a.nodes[i].outputs), ""), (j,))[0] != j
            or self.a.maker.get(next(iter(self.b.nodes[j].outputs), ""), (i,))[0] != i
        )

    def _from_outputs(self) -> None:
        same_count = len(self.a.outputs) == len(self.b.outputs)
        there = set(self.b.outputs)
        for place, name in enumerate(self.a.outputs):
            other = name if name in there else self.b.outputs[place] if same_count else None
            if other is not None:
                self._made_alike(name, other)

    def _backward(self) -> None:
        """Pair what makes the inputs of pairs."""
        while self._fresh:
            i, j = self._fresh.popleft()
            for x, y in zip(self.a.nodes[i].inputs, self.b.nodes[j].inputs, strict=False):
                self._made_alike(x, y)

    def _made_alike(self, x: str, y: str) -> None:
        first, second = self.a.maker.get(x), self.b.maker.get(y)
        if first is None or second is None or first[1] != second[1] or not self._free(first[0], second[0]):
            return
        if self._alike(first[0], second[0]):
            self._pair(first[0], second[0])

    def _alike(self, i: int, j: int) -> bool:
        """Same operator and attributes, and no weight where the other has another one; loosely, the operator alone."""
        if self._loose:
            return self._same_operator(i, j)
        one, other = self.a.nodes[i].inputs, self.b.nodes[j].inputs
        return (
            self.a.signatures[i] == self.b.signatures[j]
            and len(one) == len(other)
            and all(
                (x in self.a.weights) == (y in self.b.weights) and (x not in self.a.weights or self.same(x, y))
                for x, y in zip(one, other, strict=True)
            )
        )

    def _by_name(self) -> None:
        """Pair nodes of one name, or whose first outputs have one name."""
        for i, label in enumerate(self.a.labels):
            namesake = self.b.by_label.get(label) if self.a.by_label.get(label) == i else None
            maker = self.b.maker.get(next(iter(self.a.nodes[i].outputs), ""))
            for j in (namesake, maker[0] if maker and maker[1] == 0 else None):
                if j is not None and self._free(i, j) and (self._loose or self._same_operator(i, j)):
                    self._pair(i, j)

    def _same_operator(self, i: int, j: int) -> bool:
        return self.a.signatures[i][:2] == self.b.signatures[j][:2]

    def _by_likeness(self) -> None:
        """Pair what is left and unique in both: same operator, attributes and weights."""
        found: dict[_Key, int | None] = {}
        for j, node in enumerate(self.b.nodes):
            if j not in self.back:
                key = (
                    self.b.signatures[j],
                    tuple(self.equal.get(name, name) for name in node.inputs if name in self.b.weights),
                )
                found[key] = None if key in found else j
        mine: dict[_Key, int | None] = {}
        for i, node in enumerate(self.a.nodes):
            if i not in self.forth:
                weights = tuple(self.tensors.get(name, "?") for name in node.inputs if name in self.a.weights)
                key = self.a.signatures[i], weights
                mine[key] = None if key in mine else i
        for key, only in mine.items():
            other = found.get(key)
            if only is not None and other is not None:
                self._pair(only, other)
