"""The difference between two versions of a graph, as lines that change a graphsurgeon graph from one to the other."""

from collections.abc import Iterator, Mapping, Sequence

import onnx

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.surgery.model.lookups import difference
from layerwise._tool.surgery.model.structure import Graph, changed
from layerwise._tool.surgery.script.literals import Stored, attribute, value_arguments

_BODY = onnx.AttributeProto.GRAPH


class ScriptDelta:
    """variable: the name of the graph in the script. serial: numbers the variables of its nodes, over all steps."""

    def __init__(self, before: Graph, after: Graph, variable: str, stored: Stored, serial: Iterator[int]) -> None:
        self.before, self.after, self.variable = before, after, variable
        self._stored, self._serial = stored, serial
        self._names: dict[int, str] = {}
        self._gone, self._new = difference(before.nodes, after.nodes)
        self._pairs = _pairs(self._gone, self._new)

    def lines(self) -> list[str]:
        """Return the lines; none if the versions are equal."""
        changed = [*self._changed()]
        sources, removed, added = [*self._sources()], [*self._removed()], [*self._added()]
        return [*self._found(), *self._renamed(), *changed, *sources, *removed, *added, *self._order(), *self._ends()]

    # Nodes

    def _found(self) -> Iterator[str]:
        for node in self._gone:
            if id(node) in self._names:
                yield f"{self._names[id(node)]} = {self._lookup(node)}"

    def _lookup(self, node: onnx.NodeProto) -> str:
        label = self.before.label(node)
        if label:
            return f"node({self.variable}, {label!r})"
        return f"{self.variable}.nodes[{next(i for i, n in enumerate(self.before.nodes) if n is node)}]"

    def _name(self, node: onnx.NodeProto) -> str:
        return self._names.setdefault(id(node), f"n{next(self._serial)}")

    def _changed(self) -> Iterator[str]:
        for old, new in self._pairs:
            lines = [*self._edited(self._name(old), old, new)]
            if not lines:
                del self._names[id(old)]
            yield from lines

    def _edited(self, name: str, old: onnx.NodeProto, new: onnx.NodeProto) -> Iterator[str]:
        for key, field in (("op", "op_type"), ("name", "name"), ("domain", "domain")):
            if getattr(old, field) != getattr(new, field):
                yield f"{name}.{key} = {getattr(new, field)!r}"
        yield from self._attributes(name, old, new)
        for key, one, other in (("inputs", old.input, new.input), ("outputs", old.output, new.output)):
            if len(one) == len(other):
                places = [i for i in range(len(one)) if one[i] != other[i]]
                yield from (f"{name}.{key}[{i}] = {self._tensor(other[i])}" for i in places)
            else:
                yield f"{name}.{key} = {self._tensors(other)}"

    def _attributes(self, name: str, old: onnx.NodeProto, new: onnx.NodeProto) -> Iterator[str]:
        was = {a.name: a for a in old.attribute}
        now = {a.name: a for a in new.attribute}
        yield from (f"del {name}.attrs[{key!r}]" for key in was if key not in now)
        for key, value in now.items():
            if was.get(key) == value:
                continue
            if value.type == _BODY and key in was and was[key].type == _BODY:
                yield from self._body(f"{name}.attrs[{key!r}]", was[key].g, value.g)
            else:
                yield f"{name}.attrs[{key!r}] = {attribute(value, self._stored, self.variable)}"

    def _body(self, place: str, old: onnx.GraphProto, new: onnx.GraphProto) -> Iterator[str]:
        variable = f"body_{next(self._serial)}"
        inner = _aligned(Graph.of(old, self.before), Graph.of(new, self.after))
        yield f"{variable} = inside({self.variable}, {place})"
        yield from ScriptDelta(*inner, variable, self._stored, self._serial).lines()

    def _removed(self) -> Iterator[str]:
        kept = {id(old) for old, _ in self._pairs}
        for node in (node for node in self._gone if id(node) not in kept):
            yield f"remove({self.variable}, {self._name(node)})"

    def _added(self) -> Iterator[str]:
        paired = {id(new) for _, new in self._pairs}
        for place, node in enumerate(self.after.nodes):
            if id(node) in self._new_ids and id(node) not in paired:
                yield f"{self.variable}.nodes.insert({place}, {self._made(node)})"

    @property
    def _new_ids(self) -> set[int]:
        return {id(node) for node in self._new}

    def _made(self, node: onnx.NodeProto) -> str:
        pairs = (f"{a.name!r}: {attribute(a, self._stored, self.variable)}" for a in node.attribute)
        parts = [f"op={node.op_type!r}", f"name={node.name!r}"]
        attrs = ", ".join(pairs)
        parts += [f"attrs={{{attrs}}}"] if attrs else []
        parts += [f"inputs={self._tensors(node.input)}", f"outputs={self._tensors(node.output)}"]
        parts += [f"domain={node.domain!r}"] if node.domain else []
        return f"gs.Node({', '.join(parts)})"

    def _order(self) -> Iterator[str]:
        """Sort the nodes, if changing, removing and inserting them leaves them out of order."""
        became = {id(old): new for old, new in self._pairs}
        paired = {id(new) for _, new in self._pairs}
        gone = {id(node) for node in self._gone}
        nodes = [became.get(id(n), n) for n in self.before.nodes if id(n) not in gone or id(n) in became]
        for place, node in enumerate(self.after.nodes):
            if id(node) in self._new_ids and id(node) not in paired:
                nodes.insert(place, node)
        if [id(n) for n in nodes] == [id(n) for n in self.after.nodes]:
            return
        labels = [self.after.label(node) for node in self.after.nodes]
        if all(labels):
            yield f"reorder({self.variable}, {labels!r})"
        else:
            raise LayerwiseError("a graph with nodes that have neither name nor output cannot be reordered by a script")

    # Tensors

    def _tensor(self, name: str) -> str:
        return f"tensor({self.variable}, {name!r})"

    def _tensors(self, names: Sequence[str]) -> str:
        return f"[{', '.join(map(self._tensor, names))}]"

    def _renames(self) -> dict[str, str]:
        """Return new name -> old name of weights that are equal otherwise. graphsurgeon drops unused ones."""
        old, new, readers = self.before.initializers, self.after.initializers, self.before.lookups.readers
        gone = {_values(tensor): name for name, tensor in old.items() if name not in new and name in readers}
        added = {name: _values(tensor) for name, tensor in new.items() if name not in old} if gone else {}
        return {name: gone.pop(values) for name, values in added.items() if values in gone}

    def _renamed(self) -> Iterator[str]:
        yield from (f"rename({self.variable}, {old!r}, {new!r})" for new, old in self._renames().items())

    def _sources(self) -> Iterator[str]:
        """Return new and changed weights, and tensors that are no longer weights."""
        old, new, renamed = self.before.initializers, self.after.initializers, self._renames()
        for name, tensor in new.items():
            if name not in renamed and old.get(name) is not tensor and old.get(name) != tensor:
                yield f"put({self.variable}, gs.Constant({name!r}, {self._stored.tensor(tensor)}))"
        for name in old.keys() - new.keys():
            if self.after.defines(name):
                yield f"put({self.variable}, gs.Variable({name!r}))"

    def _ends(self) -> Iterator[str]:
        fed = [[v for v in g.inputs if v.name not in g.initializers] for g in (self.before, self.after)]
        given = [list(self.before.outputs), list(self.after.outputs)]
        for key, (old, new) in (("inputs", fed), ("outputs", given)):
            if old == new:
                continue
            known = {value.name: value for value in old}
            names = [value.name for value in new]
            changed = [value for value in new if known.get(value.name) != value]
            yield from (f"declare({self.variable}, {v.name!r}, {value_arguments(v)})" for v in changed)
            if [value.name for value in old] != names:
                yield f"{self.variable}.{key} = {self._tensors(names)}"


def _pairs(
    gone: Sequence[onnx.NodeProto], new: Sequence[onnx.NodeProto]
) -> list[tuple[onnx.NodeProto, onnx.NodeProto]]:
    """Match nodes before and after: by the same first output, or the same name."""
    by_output = {name: node for node in gone for name in list(node.output)[:1] if name}
    names = [node.name for node in gone if node.name]
    by_name = {node.name: node for node in gone if names.count(node.name) == 1} if len(gone) < 1000 else {}
    pairs, used = [], set[int]()
    for node in new:
        old = by_output.get(next(iter(node.output), "")) or by_name.get(node.name)
        if old is not None and id(old) not in used:
            used.add(id(old))
            pairs.append((old, node))
    return pairs


def _aligned(before: Graph, after: Graph) -> tuple[Graph, Graph]:
    """Match two bodies whose equal nodes are the same objects, as in versions of one graph."""
    known: Mapping[bytes, onnx.NodeProto] = {node.SerializeToString(): node for node in before.nodes}
    used: set[int] = set()
    nodes = []
    for node in after.nodes:
        same = known.get(node.SerializeToString(), node)
        nodes.append(node if id(same) in used else same)
        used.add(id(nodes[-1]))
    return before, after.with_(nodes=tuple(nodes))


def _values(tensor: onnx.TensorProto) -> bytes:
    return bytes(changed(tensor, name="").SerializeToString(deterministic=True))


def unsupported(what: str, name: str) -> LayerwiseError:
    """Return the error for what a script cannot do."""
    return LayerwiseError(f"{what} {shown(name, 80)!r} cannot be written as a graphsurgeon script")
