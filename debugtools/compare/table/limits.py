"""What one step explains of a tensor's error in a comparison, from what is known of the tensors before it."""

import math
from collections.abc import Container, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.sums import Shape
from layerwise._tool.debugtools.compare.arithmetic.tolerance import unit_roundoff
from layerwise._tool.debugtools.compare.table.between import Between
from layerwise._tool.debugtools.compare.table.places import Place, Places
from layerwise._tool.debugtools.compare.table.rounding import Made, StepRule, made_by
from layerwise._tool.debugtools.compare.table.step import (
    Scale,
    explained_error,
    nudges,
    scale_of,
    smallest,
)


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
        self._places, self._known, self._inputs = places, known, inputs
        self._rule = StepRule(one_backend)

    def of(
        self, name: str, result: Comparison, mode: str, place: Place, inputs: Sequence[Known], *, exact: bool = False
    ) -> float | None:
        """The relative L2 error that a tensor's inputs' errors and one step explain; None where that is not asked.

        exact: with inputs that have no errors.
        """
        if not inputs or not result.rel_l2:
            return None
        between = self._places.between(name, self._known, self._inputs)
        if between is not None:
            inputs = [*inputs, *(self._known[read] for read in between.reads if read in self._known)]
        error = 0.0 if exact else max(known.rel_l2 for known in inputs)
        scales = [known.scale for known in inputs if known.mode]
        types, floor = place.types, result.rule.floor
        made = self._made(name, between)
        if mode == "every":  # nothing is rounded but where the graphs say so
            behind = self._places.rounded_between(name, self._known)
            types = (*behind, *(kind for known in inputs for kind in known.types))
            floor = smallest((*result.dtypes, *types)) * math.sqrt(made.count)
        terms = self._longest(made, result)
        rounding = self._rule.bound(
            made, (*result.dtypes, *types), terms, scale_of(result), _floating(inputs), optimised=mode == "executed"
        )
        ops = (place.op,) if between is None else between.ops
        return explained_error(result, ops, rounding, error, scales, floor, terms)

    def alone(self, name: str, result: Comparison) -> float:
        """The relative L2 error that the rounding of the tensor's own node explains."""
        made = self._made(name, None)
        return self._rule.bound(replace(made, count=1), result.dtypes, self._longest(made, result), scale_of(result))

    def nudges(self, name: str, result: Comparison) -> float:
        """By how many roundings the inputs of the tensor's node are to be moved to see its condition."""
        ops = [self._places.place(name).op]
        longest = self._longest(self._made(name, None), result)
        return nudges(ops, longest, one_backend=self._rule.one_backend)

    @property
    def known(self) -> Container[str]:
        """The tensors of which anything is known so far."""
        return self._known.keys()

    def direct(self, name: str) -> Known | None:
        """What is known of a tensor; graph inputs are exact."""
        return EXACT if self._places.is_input(name) else self._known.get(name)

    def _made(self, name: str, between: Between | None) -> Made:
        """How a tensor is made from those that are known."""
        if between is not None:
            return made_by((), between)
        return self._places.made(name, self._known, self._inputs)

    def _longest(self, made: Made, result: Comparison) -> int:
        """The length of the longest sum that makes a tensor."""

        def shape(read: str) -> Shape | None:
            return self._known[read].shape if read in self._known else self._inputs.get(read)

        return made.terms(shape, math.prod(result.shapes[1]))


def _floating(inputs: Sequence[Known]) -> list[Scale]:
    """The scales of floating inputs; of graph inputs nothing is known."""
    return [known.scale for known in inputs if not known.types or unit_roundoff(known.types)]
