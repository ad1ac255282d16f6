"""Live cuts: any set of a graph's nodes as a separate model, fed with a reference's tensors.

Definition of a live cut of nodes S:
1. the nodes of S, unchanged, in the original order;
2. every tensor read, captures of bodies included, is made earlier in S, is a weight, or is a graph input of the same
   name that is fed the reference's tensor; Constant nodes with the reference's values count as weights;
3. no name is both input and made;
4. its outputs are the tensors made in S that are graph outputs, have no reader, or have a reader outside S;
5. run in the reference with optimisation off, every output equals the reference's tensor bit for bit.

S need not be convex. A tensor that cannot be fed (a sequence, an optional, one that the reference does not make) adds
its maker as glue; one that cannot be compared is not an output.
"""

from collections.abc import Container, Iterable

from layerwise._tool.surgery.cut.randomness import Randomness
from layerwise._tool.surgery.cut.segments import GraphCut, Segment


class LiveCut(Segment, frozen=True):
    """A segment of nodes that need not be consecutive. glue: its nodes that were not requested."""

    glue: tuple[int, ...] = ()


class LiveCuts:
    """Makes live cuts of one graph.

    known: the tensors with reference values; constants: those that Constant nodes make with the same values, too.
    """

    def __init__(self, graph: GraphCut, known: Container[str], constants: Container[str] = ()) -> None:
        self.graph, self._known, self._constants = graph, known, constants
        self._outputs = frozenset(graph.outputs)
        self._random = Randomness(graph)

    def judgeable(self, nodes: Iterable[int]) -> list[int]:
        """Return those of `nodes` that make something comparable and deterministic; the others can only be glue."""
        return [i for i in nodes if self._made(i) and not self._random.draws(self.graph.nodes[i])]

    def cut(self, nodes: Iterable[int]) -> LiveCut:
        """Return the live cut of `nodes` (positions in topological order), with the glue that they need."""
        asked = set(nodes)
        chosen = self._with_glue(asked)
        order = sorted(chosen)
        made = {name for i in order for name in self.graph.nodes[i].output if name}
        weights = self.graph.initializers.keys() | self.graph.sparse.keys()
        feeds = dict.fromkeys(
            name for i in order for name in self.graph.reads[i] if name not in made and name not in weights
        )
        gives = [name for i in order for name in self._made(i) if self._lives_on(name, chosen)]
        glue = [i for i in sorted(chosen - asked) if not self._is_constant(i)]
        return LiveCut(tuple(order), tuple(feeds), tuple(gives), tuple(glue))

    def contiguous(self, nodes: Iterable[int]) -> tuple[int, ...]:
        """Return `nodes` and all nodes on paths between them: a cut without gaps that the reference would correct."""
        chosen = set(nodes)
        if len(chosen) < 2:
            return tuple(chosen)
        first, last = min(chosen), max(chosen)
        below, above = set(chosen), set(chosen)
        for i in range(first, last + 1):
            if any(self.graph.maker.get(name) in below for name in self.graph.reads[i]):
                below.add(i)
        for i in range(last, first - 1, -1):
            if any(
                reader in above for name in self.graph.nodes[i].output for reader in self.graph.readers.get(name, ())
            ):
                above.add(i)
        return tuple(sorted(below & above))

    def _with_glue(self, nodes: set[int]) -> set[int]:
        chosen, waiting = set(nodes), list(nodes)
        while waiting:
            for name in self.graph.reads[waiting.pop()]:
                maker = self.graph.maker.get(name)
                if maker is None or maker in chosen:
                    continue
                if name in self._constants or name not in self._known:
                    chosen.add(maker)
                    waiting.append(maker)
        return chosen

    def _made(self, i: int) -> list[str]:
        outputs = self.graph.nodes[i].output
        return [name for name in outputs if name and name in self._known and name not in self._constants]

    def _is_constant(self, i: int) -> bool:
        return any(name in self._constants for name in self.graph.nodes[i].output)

    def _lives_on(self, name: str, chosen: set[int]) -> bool:
        readers = self.graph.readers.get(name)
        return name in self._outputs or not readers or any(reader not in chosen for reader in readers)
