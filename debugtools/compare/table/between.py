"""What two graphs of different structure compute between the tensors that they have in common."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from layerwise._tool.debugtools.compare.arithmetic.sums import Shape, divides, terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import onnx

    from layerwise._tool.surgery.cut.segments import GraphCut


_EACH = frozenset({
    "Abs", "Add", "Cast", "Clip", "Constant", "Div", "Erf", "Exp", "Identity", "Log", "Max", "Min", "Mul", "Neg", "Pow",
    "Reciprocal", "Relu", "Sigmoid", "Sqrt", "Sub", "Tanh", "Where",
})  # fmt: skip
"""Operators that take each number by itself."""


class Span(Struct, frozen=True):
    """The nodes of one graph (positions, in order) that make a tensor from known ones. reads: those, and inputs."""

    nodes: tuple[int, ...]
    reads: tuple[str, ...]
    steps: int


class Step(Struct, frozen=True):
    """One node that takes part in making a tensor. weights: the graph's; common: the comparison's names. inferred: the
    shape of a tensor of the graph that was not seen. last: it makes the tensor itself.
    """

    node: "onnx.NodeProto"
    weights: "Mapping[str, onnx.TensorProto]"
    common: Callable[[str], str]
    inferred: Callable[[str], Shape | None] = lambda _: None
    last: bool = True

    def terms(self, shape: Callable[[str], Shape | None], size: int) -> int:
        """How many terms its sums have. shape: of a tensor by the comparison's name; size: elements of the tensor."""

        def known(read: str) -> Shape | None:
            weight = self.weights.get(read)
            if weight is not None:
                return tuple(weight.dims)
            seen = shape(self.common(read))
            return self.inferred(read) if seen is None else seen

        own = None if self.last or not divides(self.node) else known(self.node.output[0])
        return terms(self.node, known, size if own is None else math.prod(own))


class Between(Struct, frozen=True):
    """How a tensor is made from known ones in both graphs, whose nodes there differ.

    reads: the known tensors, by the comparison's names. longest: nodes in a row, of the graph that has more. same_sums:
    both add up by the same operators.
    """

    steps: tuple[Step, ...]
    reads: tuple[str, ...]
    longest: int
    same_sums: bool = False

    @property
    def ops(self) -> frozenset[str]:
        """All operators that take part."""
        return frozenset(step.node.op_type for step in self.steps)


def same_sums(mine: "Iterable[onnx.NodeProto]", theirs: "Iterable[onnx.NodeProto]") -> bool:
    """Whether two graphs have the same operators but for such as take each number by itself: then one backend adds up
    in the same order in both."""
    kept = ([node.op_type for node in nodes if node.op_type not in _EACH] for nodes in (mine, theirs))
    return next(kept) == next(kept)


def span(cut: "GraphCut", name: str, stops: Callable[[str], bool]) -> Span:
    """The nodes of a graph that make tensor `name` (its own name there) from those at which it stops."""
    last = cut.maker.get(name)
    if last is None:
        return Span((), (name,), 0)
    nodes, waiting, reads = {last}, [last], dict[str, None]()
    while waiting:
        for read in cut.reads[waiting.pop()]:
            maker = cut.maker.get(read)
            if maker is None or stops(read):
                if read not in cut.initializers:
                    reads[read] = None
            elif maker not in nodes:
                nodes.add(maker)
                waiting.append(maker)
    ordered, depth = sorted(nodes), dict[int, int]()
    for i in ordered:
        inside = (cut.maker.get(read, -1) for read in cut.reads[i] if not stops(read))
        depth[i] = 1 + max((depth.get(maker, 0) for maker in inside), default=0)
    return Span(tuple(ordered), tuple(reads), depth[last])
