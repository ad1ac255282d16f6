"""Where tensors are made: node, operator and what it reads, by the names of the comparison's model."""

from collections.abc import Callable, Container, Mapping
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.sums import Shape
from layerwise._tool.debugtools.compare.quantised.coarsest import coarsest_types, rounded_to
from layerwise._tool.debugtools.compare.sides.models import Model
from layerwise._tool.debugtools.compare.table.between import Between, Span, same_sums, span
from layerwise._tool.debugtools.compare.table.rounding import InferredShapes, Made, made_by, steps_of
from layerwise._tool.surgery.cut.randomness import RANDOM_OPS, Randomness
from layerwise._tool.surgery.origin.origin import Origin

if TYPE_CHECKING:
    import onnx

    from layerwise._tool.debugtools.compare.sides.side import ModelSide
    from layerwise._tool.surgery.cut.segments import GraphCut

MAY_DRAW = RANDOM_OPS | {"Dropout", "If", "Loop", "Scan", "SequenceMap"}
"""Operators that draw, or do so as their inputs or bodies say."""


def random_origins(cut: "GraphCut") -> dict[str, int]:
    """Return the tensors that come from random numbers, each with the position of a node that draws them.

    A node that draws is the origin of its own outputs.
    """
    if not cut.model.functions and all(not node.domain and node.op_type not in MAY_DRAW for node in cut.nodes):
        return {}
    randomness = Randomness(cut)
    origins: dict[str, int] = {}
    for i, (node, reads) in enumerate(zip(cut.nodes, cut.reads, strict=True)):
        drawn = i if randomness.draws(node) else next((origins[name] for name in reads if name in origins), None)
        if drawn is not None:
            origins.update(dict.fromkeys(filter(None, node.output), drawn))
    return origins


class Place(Struct, frozen=True):
    """Where a tensor is made. i: position of its node in topological order, -1 for a graph input or initializer.

    reads: None where nobody looked. types: the coarsest that it was rounded to on the way, one of each side's graph.
    origin: where the node comes from, None where unknown.
    """

    i: int = -1
    node: str = ""
    op: str = ""
    reads: tuple[str, ...] | None = ()
    depth: int = 1
    types: tuple[str, ...] = ()
    origin: Origin | None = None


class Remade(NamedTuple):
    """A graph whose parts can be run again; its external weights lie in `folder`. of_both: it is both sides' graph."""

    cut: "GraphCut"
    folder: Path
    of_both: bool


class Places:
    """Finds the nodes of a comparison's model; without a model, tensors are numbered as they come.

    whole_graph: what nodes read is looked at too. other: a side with another model. A tensor that a Cast makes here and
    another operator there (a precision round trip) is placed as that operator, with what it reads: the Cast only stands
    for it. Its position is the one of the operator of that name here, or the Cast's where there is none. Not so where
    the other model was aligned: there a Cast's counterpart may be that of what it reads too.
    """

    def __init__(self, model: Model | None, whole_graph: bool, other: "ModelSide | None" = None) -> None:
        self._model, self.whole_graph, self._other = model, whole_graph, other
        self._order: dict[str, int] = {}
        self._inferred: dict[tuple[Any, ...], InferredShapes] = {}
        self.place = lru_cache(maxsize=None)(self._place)

    @cached_property
    def _cut(self) -> "GraphCut | None":
        """The model may still be parsed in its thread: nobody waits for it before the first tensor is placed."""
        return self._model.cut if self._model and self.whole_graph else None

    @cached_property
    def _inputs(self) -> frozenset[str]:
        return frozenset(self._cut.inputs) if self._cut else frozenset()

    @cached_property
    def _named(self) -> dict[tuple[str, str], int]:
        """Position by name and operator; of several alike the first."""
        nodes = self._cut.nodes if self._cut else ()
        return {(node.name, node.op_type): i for i, node in reversed(list(enumerate(nodes)))}

    def is_input(self, name: str) -> bool:
        return name in self._inputs

    def is_output(self, name: str) -> bool:
        """Whether it is one of the graph's outputs; without the graph, only those are compared."""
        return self._cut is None or name in self._cut.outputs

    @cached_property
    def _origins(self) -> dict[str, int]:
        if self._model is None or (self._cut is None and not self._model.operators & MAY_DRAW):
            return {}
        return random_origins(self._model.cut)

    def node(self, name: str) -> "tuple[onnx.NodeProto | None, Mapping[str, onnx.TensorProto]]":
        """The node that makes a tensor, None where nobody looked at the graph, and the graph's initializers."""
        if self._cut is None or name not in self._cut.maker:
            return None, {}
        return self._cut.nodes[self._cut.maker[name]], self._cut.initializers

    def remade(self) -> Remade | None:
        """The graph whose nodes make what is compared; None where nobody looked at it."""
        if self._cut is None or self._model is None:
            return None
        return Remade(self._cut, self._model.file.folder, of_both=self._aligned is None)

    def any_random(self) -> bool:
        """Whether anything in the model draws random numbers."""
        return bool(self._origins)

    def draws(self, name: str) -> bool:
        """Whether the node that makes a tensor draws random numbers; False where nobody looked at the graph."""
        return self._cut is not None and name in self._origins and self._cut.maker[name] == self._origins[name]

    def random(self, name: str) -> str:
        """A node that draws random numbers from which a tensor comes, in words; "" if there is none."""
        if self._model is None or name not in self._origins:
            return ""
        node = self._model.cut.nodes[self._origins[name]]
        return f"{shown(node.op_type, 60)} {shown(node.name or node.output[0], 120)!r}"

    @cached_property
    def _coarsest(self) -> dict[str, str]:
        return coarsest_types(self._cut) if self._cut else {}

    @cached_property
    def _other_coarsest(self) -> dict[str, str]:
        return coarsest_types(self._other.model.cut) if self._other and self._other.model.has_graph else {}

    def _types(self, name: str) -> tuple[str, ...]:
        other = self._other.own(name) if self._other else ""
        return tuple(filter(None, (self._coarsest.get(name), self._other_coarsest.get(other))))

    def rounded_between(self, name: str, known: Container[str]) -> set[str]:
        """The dtypes that are rounded to in either graph between the tensors in `known` and tensor `name`."""
        if self._cut is None:
            return set()
        found = _rounded_behind(self._cut, name, known.__contains__)
        other = self._other
        if other is not None and other.model.has_graph:
            found |= _rounded_behind(other.model.cut, other.own(name), lambda own: other.common(own) in known)
        return found

    def made(self, name: str, known: Container[str], inputs: Mapping[str, Shape]) -> Made:
        """How tensor `name` is made from those in `known`; by nothing where nobody looked at the graph.

        inputs: the shapes of the graph's inputs, by the comparison's names.
        """
        cut = self._cut
        if cut is None or name not in cut.maker:
            return Made()
        nodes = span(cut, name, lambda read: read in known or read in self._inputs).nodes
        return made_by(steps_of(cut, nodes, str, self._shapes(cut, inputs)))

    def _shapes(self, cut: "GraphCut", inputs: Mapping[str, Shape]) -> InferredShapes:
        key = id(cut), *inputs.items()
        if key not in self._inferred:
            self._inferred = {one: found for one, found in self._inferred.items() if one[0] != id(cut)}
            self._inferred[key] = InferredShapes(cut, inputs)
        return self._inferred[key]

    def between(self, name: str, known: Container[str], inputs: Mapping[str, Shape]) -> Between | None:
        """How tensor `name` is made from those in `known` where the graphs of two sides that are aligned differ there;
        None where they do not. inputs: as `made` takes them.
        """
        cut, other = self._cut, self._aligned
        if cut is None or other is None or name not in cut.maker or other.own(name) not in other.model.cut.maker:
            return None
        theirs = other.model.cut
        mine = span(cut, name, known.__contains__)
        stands_for = other.own(name)
        here = any(read in known and other.own(read) == stands_for for read in mine.reads)
        found = Span((), (), 0)
        if not here:
            found = span(theirs, stands_for, lambda own: any(name in known for name in other.naming.commons(own)))
        reads = tuple(map(other.common, found.reads))
        ops = [[graph.nodes[i].op_type for i in part.nodes] for graph, part in ((cut, mine), (theirs, found))]
        if ops[0] == ops[1] and len(ops[0]) == 1 and sorted(mine.reads) == sorted(reads):
            return None
        own = {other.own(read): shape for read, shape in inputs.items()}
        steps = steps_of(cut, mine.nodes, str, self._shapes(cut, inputs))
        steps += steps_of(theirs, found.nodes, other.common, self._shapes(theirs, own))
        nodes = [[graph.nodes[i] for i in part.nodes] for graph, part in ((cut, mine), (theirs, found))]
        reads = tuple(dict.fromkeys([*mine.reads, *reads]))
        return Between(tuple(steps), reads, max(mine.steps, found.steps), same_sums(*nodes))

    @property
    def _aligned(self) -> "ModelSide | None":
        """The other side, if its tensors are not the model's by their names."""
        other = self._other
        return other if other is not None and other.naming.aligned and other.model.has_graph else None

    def _place(self, name: str) -> Place:
        if self._model is None:
            return Place(self._order.setdefault(name, len(self._order)))
        if self._cut is None:
            maker = self._model.maker(name)
            return Place(*maker, reads=None) if maker else Place()
        place = _made(self._cut, name, self._types(name))
        if self._aligned is not None:
            place = replace(
                place, depth=max(place.depth, _made(self._aligned.model.cut, self._aligned.own(name)).depth)
            )
        if self._other is None or self._aligned is not None or place.op != "Cast":
            return place
        meant = _made(self._other.model.cut, self._other.own(name))
        if meant.op in ("", "Cast"):
            return place
        i = self._named.get((meant.node, meant.op), place.i) if meant.node else place.i
        reads = tuple(self._other.common(read) for read in meant.reads or ())
        return replace(meant, i=i, types=place.types, reads=reads, origin=meant.origin or place.origin)


def _rounded_behind(cut: "GraphCut", name: str, stops: Callable[[str], bool]) -> set[str]:
    found: set[str] = set()
    seen, queue = {name}, [name]
    while queue:
        made = queue.pop()
        node = cut.nodes[cut.maker[made]] if made in cut.maker else None
        if node is None:
            found |= _types_of_input(cut, made)
            continue
        found |= set(rounded_to(node))
        fresh = [read for read in cut.reads[cut.maker[made]] if read not in seen and read not in cut.initializers]
        seen.update(fresh)
        queue += [read for read in fresh if not stops(read)]
    return found


def _types_of_input(cut: "GraphCut", name: str) -> set[str]:
    return {dtype_name(each.type.tensor_type.elem_type) for each in cut.model.graph.input if each.name == name}


def _made(cut: "GraphCut", name: str, types: tuple[str, ...] = ()) -> Place:
    i = cut.maker.get(name)
    if i is None:
        return Place(types=types)
    reads = tuple(read for read in cut.reads[i] if read not in cut.initializers)
    return Place(i, cut.nodes[i].name, cut.nodes[i].op_type, reads, cut.depth[i], types, cut.origins[i])
