"""What rounding in the nodes that make a tensor explains of its error: one rule for all that judge a step.

The layer table asks it of a tensor and what was compared before it, `debug locate` of the region that it runs on the
reference's tensors, `debug reduce` of a candidate. The formula is `debugtools.compare.table.step.step_bound`; here is
what it is asked with, so that the same nodes are given the same bound wherever they are judged.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from layerwise._tool.debugtools.compare.arithmetic.sums import Shape, is_convolution
from layerwise._tool.debugtools.compare.table.between import Between, Step
from layerwise._tool.debugtools.compare.table.step import Scale, step_bound

if TYPE_CHECKING:
    from layerwise._tool.surgery.cut.segments import GraphCut

_CONSTANTS = frozenset({"Constant", "ConstantOfShape"})


class InferredShapes:
    """The shapes of a graph's tensors as inference finds them, when the first is asked for; by the graph's own names.

    inputs: the shapes of the graph's inputs.
    """

    def __init__(self, cut: "GraphCut", inputs: Mapping[str, Shape]) -> None:
        self._cut, self._inputs = cut, inputs
        self._found: dict[str, Shape | None] | None = None

    def __call__(self, name: str) -> Shape | None:
        """The shape of a tensor, None where inference does not tell it."""
        if self._found is None:
            known = self._cut.estimates(self._inputs)
            self._found = {each: estimate.shape for each, estimate in known.items()}
        return self._found.get(name)


class Made(Struct, frozen=True):
    """The nodes that make a tensor from known ones, of both graphs where these differ.

    count: how many of them may round; of the graph in which these are more. differ: the graphs add up in other ways.
    """

    steps: tuple[Step, ...] = ()
    count: int = 1
    differ: bool = False

    def terms(self, shape: Callable[[str], Shape | None], size: int) -> int:
        """The length of the longest sum, 1 where nothing is added up.

        shape: of a tensor by the comparison's name, None where it was not seen; size: elements of what is made.
        """
        return max((step.terms(shape, size) for step in self.steps), default=1)


def steps_of(
    cut: "GraphCut", nodes: Sequence[int], common: Callable[[str], str], inferred: Callable[[str], Shape | None]
) -> list[Step]:
    """Nodes of a graph (their positions, in order) that make a tensor, as `Step` has them; the last makes it itself."""
    last = max(nodes, default=-1)
    return [Step(cut.nodes[i], cut.initializers, common, inferred, last=i == last) for i in nodes]


def made_by(steps: Sequence[Step], between: Between | None = None) -> Made:
    """What `steps` make. between: what the graphs of both sides have there, where they differ."""
    count = max(1, sum(step.node.op_type not in _CONSTANTS for step in steps))
    if between is None:
        return Made(tuple(steps), count)
    return Made((*steps, *between.steps), max(count, between.longest), differ=not between.same_sums)


class StepRule(Struct, frozen=True):
    """one_backend: both sides run on the same one."""

    one_backend: bool

    def bound(
        self, made: Made, types: Iterable[str], terms: int, scale: Scale, read: Collection[Scale] = (), *,
        optimised: bool = False,
    ) -> float:  # fmt: skip
        """Return the relative L2 error that rounding in the nodes explains, what they read being the same.

        types: what they round to; terms: of their longest sum. scale: of what they make; read: of the floating tensors
        that they read, weights left out. optimised: one side runs them fused, with convolutions in blocks of channels.
        """
        return step_bound(
            types, terms, made.count,
            one_backend=self.one_backend and not made.differ,
            blocked=optimised and any(is_convolution(step.node.op_type) for step in made.steps),
            one_sided=scale.one_sided,
            equal=bool(read) and scale.constant and all(each.constant for each in read),
        )  # fmt: skip
