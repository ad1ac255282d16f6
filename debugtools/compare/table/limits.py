"""What one step explains of a tensor's error in a comparison, from what is known of the tensors before it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.sums import is_convolution
from layerwise._tool.debugtools.compare.table.between import Between, Step
from layerwise._tool.debugtools.compare.table.places import Place, Places
from layerwise._tool.debugtools.compare.table.step import (
    Scale,
    explained_error,
    nudges,
    scale_of,
    smallest,
    step_bound,
)

if TYPE_CHECKING:
    import onnx

_FUSED = 32  # nodes that are looked at for one tensor


class Known(Struct, frozen=True):
    """What a later row needs of a tensor: relative L2 error, whether each side is finite, whether it is bad.

    drawn: other random numbers than the other side's may be in it. mode: how it was observed; depth: its place's.
    enlarged: a node before it, or its own, makes small differences large, which explains its error.
    """

    rel_l2: float
    finite: tuple[bool, bool]
    bad: bool
    drawn: bool = False
    mode: str = ""
    depth: int = 0
    scale: Scale = Scale(math.nan, math.nan)
    shape: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    enlarged: bool = False


EXACT = Known(0.0, (True, True), False)
DRAWN = Known(0.0, (True, True), False, drawn=True)


class StepLimits:
    """Of one pair of runners in one iteration. known: what is known of each tensor so far, kept by others. inputs: the
    shapes of the graph's.
    """

    def __init__(
        self, places: Places, known: Mapping[str, Known], inputs: Mapping[str, tuple[int, ...]], *, one_backend: bool
    ) -> None:
        self._places, self._known, self._inputs, self._one_backend = places, known, inputs, one_backend

    def of(
        self, name: str, result: Comparison, mode: str, place: Place, inputs: Sequence[Known], *, exact: bool = False
    ) -> float | None:
        """The relative L2 error that a tensor's inputs' errors and one step explain; None where that is not asked.

        exact: with inputs that have no errors.
        """
        if not inputs or not result.rel_l2:
            return None
        between = self._places.between(name, self._known)
        if between is not None:
            inputs = [*inputs, *(self._known[read] for read in between.reads if read in self._known)]
        error = 0.0 if exact else max(known.rel_l2 for known in inputs)
        scales = [known.scale for known in inputs if known.mode]
        types, floor = place.types, result.rule.floor
        steps = max(1, place.depth - max(known.depth for known in inputs)) if between is None else between.longest
        if mode == "every":  # nothing is rounded but where the graphs say so
            behind = self._places.rounded_between(name, self._known)
            types = (*behind, *(kind for known in inputs for kind in known.types))
            floor = smallest((*result.dtypes, *types)) * math.sqrt(steps)
        terms = self._longest(name, between, result)
        alike = self._one_backend and between is None
        blocked = mode == "executed" and any(is_convolution(node.op_type) for node, _ in self._unseen(name))
        sided = scale_of(result).one_sided
        rounding = step_bound(
            (*result.dtypes, *types), terms, steps, one_backend=alike, blocked=blocked, one_sided=sided
        )
        ops = (place.op,) if between is None else between.ops
        return explained_error(result, ops, rounding, error, scales, floor, terms)

    def alone(self, name: str, result: Comparison) -> float:
        """The relative L2 error that the rounding of the tensor's own node explains."""
        return step_bound(result.dtypes, self._longest(name, None, result), 1, one_backend=self._one_backend)

    def nudges(self, name: str, result: Comparison) -> float:
        """By how many roundings the inputs of the tensor's node are to be moved to see its condition."""
        ops = [self._places.place(name).op]
        return nudges(ops, self._longest(name, None, result), one_backend=self._one_backend)

    def direct(self, name: str) -> Known | None:
        """What is known of a tensor; graph inputs are exact."""
        return EXACT if self._places.is_input(name) else self._known.get(name)

    def _longest(self, name: str, between: Between | None, result: Comparison) -> int:
        """The length of the longest sum that makes a tensor."""

        def shape(read: str) -> tuple[int, ...] | None:
            return self._known[read].shape if read in self._known else self._inputs.get(read)

        size = math.prod(result.shapes[1])
        if between is not None:
            return between.terms(shape, size)
        return max((Step(node, weights, str).terms(shape, size) for node, weights in self._unseen(name)), default=1)

    def _unseen(self, name: str) -> "Iterator[tuple[onnx.NodeProto, Mapping[str, onnx.TensorProto]]]":
        """The nodes that make a tensor from those that were observed, its own first; where others are fused with it."""
        seen, queue = {name}, [name]
        while queue and len(seen) < _FUSED:
            node, weights = self._places.node(queue.pop(0))
            if node is not None:
                yield node, weights
                reads = {read for read in node.input if self.direct(read) is None and read not in weights}
                queue += sorted(reads - seen)
                seen |= reads
