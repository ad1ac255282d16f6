"""The local error of a region, with what rounding and the formats of a quantised side explain of it."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.tolerance import QUANTISED, unit_roundoff
from layerwise._tool.debugtools.compare.quantised.coarsest import rounded_to
from layerwise._tool.debugtools.compare.sides.engine import asked_types
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.compare.table.places import Place
from layerwise._tool.debugtools.compare.table.rounding import InferredShapes, Made, StepRule, made_by, steps_of
from layerwise._tool.debugtools.compare.table.step import (
    LUCK,
    MOVED,
    Scale,
    are_steady,
    lost_below,
    nudges,
    scale_of,
    scale_of_array,
)
from layerwise._tool.debugtools.locate.lowered import Lowered, next_steps
from layerwise._tool.debugtools.locate.plan import LocatePlan
from layerwise._tool.debugtools.locate.tensor_error import Error, error_from, error_of
from layerwise._tool.debugtools.locate.walk import Met, Walk

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.quantised.ledger import Ledger
    from layerwise._tool.debugtools.locate.formats import ReferenceFormats
    from layerwise._tool.surgery.cut.segments import GraphCut

_MOST_TESTS = 100  # of what rounding the inputs does, an iteration; each opens a session
_ONE_STEP = 1.01  # where kernels round a tie, or what lies next to one, their way
_DEAR_TESTS = 10  # the same where each builds an engine


class RegionErrors:
    """Local errors of one iteration's tensors, in the order in which `walk` meets them.

    lowered: the sides' low types; the other parameters are those of `Reader`. `errors`: by the name that both sides
    know a tensor by, its relative error in the whole run; to be filled.
    """

    def __init__(
        self,
        comparer: Comparer,
        plan: LocatePlan,
        walk: Walk,
        cut: "GraphCut",
        mode: str,
        lowered: Lowered,
        ledger: "Ledger | None",
        formats: "ReferenceFormats | None",
    ) -> None:
        self._comparer, self._plan, self._walk, self._cut, self._mode = comparer, plan, walk, cut, mode
        self._lowered, self._ledger, self._formats = lowered, ledger, formats
        runner = comparer.sides[0].spec
        self._asked, self._tests = asked_types(runner), _DEAR_TESTS if runner.kind == "trt" else _MOST_TESTS
        if ledger is not None or formats is not None:
            self._tests *= 4  # what a format explains takes a test at most nodes of small tensors
        self._rule = StepRule(len({side.backend for side in comparer.sides[:2]}) == 1)
        self._inputs_shapes = {name: array.shape for name, array in walk.feed.items()}
        self._shapes = dict(self._inputs_shapes)  # by the comparison's names
        self._inferred = InferredShapes(cut, self._inputs_shapes)
        self.errors: dict[str, float] = {}
        self._scales: dict[str, Scale] = {}  # of the reference's tensors
        self._types: dict[str, str] = {}  # of the suspect's tensors, in which it gets the reference's too
        self._mixed: set[str] = set()  # of the suspect's tensors those that the reference has in another type

    def saw(self, met: Met, own: str) -> None:
        """Take in a tensor's shape and types, before its error is asked for. own: its name in the suspect."""
        self._shapes[met.name] = met.reference.shape
        if self._ledger is not None:
            self._ledger.saw(own, met.reference, self._comparer.sides[1].own(met.name), met.accumulated)
        if self._formats is not None and met.accumulated is not None:
            self._formats.saw(met.name, met.accumulated, own)
        if met.accumulated is not None:
            self._types[own] = dtype_name(met.accumulated)
            if self._types[own] != dtype_name(met.reference):
                self._mixed.add(own)

    def of(self, met: Met, result: Comparison, region: Sequence[int]) -> Error | None:
        """The local error of a tensor that `region` makes; None where that could not run.

        result: of the comparison of the whole run's tensors.
        """
        self._scales[met.name] = scale_of(result) if result.totals is not None else scale_of_array(met.reference)
        if met.local is None:
            return None
        low = [kind for i in region for kind in rounded_to(self._cut.nodes[i])]
        if met.local is met.accumulated:
            error = error_from(result, met.local, met.reference, low, len(region))
        else:
            types = self._comparer.places.place(met.name).types
            error = error_of(met.local, met.reference, low, len(region), types)
        if error.beyond and next_steps(met.local, met.reference) and self._lowered.rounds_to_steps(region):
            return replace(error, bound=error.rel, coarse=error.rel)
        made = self._made(met, region)
        error = self._stepwise(met, error, region, made, low)
        steady = are_steady(step.node.op_type for step in made.steps)
        kinds = (*self._asked, *([] if steady else self._lowered.types(met.name, region)))
        error = self._tested(met, error.allowing(kinds, len(region)), region, made)
        return self._quantised(met, error, region)

    def noise(self, met: Met, region: Sequence[int]) -> float:
        """What the formats of the quantised side explain where a tensor is made."""
        if self._formats is not None:
            return self._formats.noise(met.name)
        return self._ledger.regions.noise(region) if self._ledger is not None else 0.0

    def has_mixed(self, place: Place, own: str, region: Sequence[int]) -> bool:
        """Whether a tensor, or what makes it, is of other types on the other side."""
        reads = (name for i in region for name in self._cut.reads[i])
        return len(set(place.types)) > 1 or not self._mixed.isdisjoint((own, *reads))

    def inputs(self, region: Sequence[int]) -> float:
        """The largest error of what a region reads."""
        names = (self._comparer.sides[0].common(name) for i in region for name in self._cut.reads[i])
        return max((self.errors.get(name, 0.0) for name in names), default=0.0)

    def _quantised(self, met: Met, error: Error, region: Sequence[int]) -> Error:
        """The error with what the formats of a quantised side explain: their own rounding, and as far as it goes
        when the region carries it on.
        """
        if error.beyond and not error.onset and self._rounds_alone(met, region):
            return error.within(error.rel)
        noise = self.noise(met, region)
        if not noise or not error.bound or error.onset:
            return error
        explained = QUANTISED * noise
        if explained < error.rel < math.inf and self._tests:
            self._tests -= 1
            few = LUCK / math.sqrt(max(1, met.reference.size))  # of single elements one try says little
            explained = max(explained, (QUANTISED + few) * self._walk.response(met, noise))
        explained += self._left_out(met, region)
        return error.within(explained)

    def _rounds_alone(self, met: Met, region: Sequence[int]) -> bool:
        """Whether a region does no more than give what its codes hold of the reference's values; or makes codes of
        values that are not finite when they come to it, which codes do not hold."""
        if self._ledger is None or met.local is None or met.local.shape != met.reference.shape:
            return False
        if not _is_finite(met.reference):
            endless = not all(map(_is_finite, self._walk.read(met.tensor)))
            return endless and self._ledger.regions.makes_codes(region)
        grid = self._ledger.regions.rounds_alone(region)
        if grid is None:
            return False
        off = np.abs(met.local - grid.rounded(met.reference))
        return bool((off <= _ONE_STEP * float(grid.scale.max())).all())

    def _left_out(self, met: Met, region: Sequence[int]) -> float:
        """What the codes of the quantised side do not reach of what the other makes, as far as its inputs have moved
        beyond what these were made for."""
        if met.local is None:
            return 0.0
        if self._formats is not None:
            beyond = self._formats.beyond(met.name, met.local)
        else:
            beyond = 0.0 if self._ledger is None else self._ledger.regions.beyond(region, met.reference)
        return beyond if beyond <= QUANTISED * self.inputs(region) else 0.0

    def _stepwise(self, met: Met, error: Error, region: Sequence[int], made: Made, low: Sequence[str]) -> Error:
        """The error with what rounding in the region's nodes explains, by the rule of the layer table.

        low: what the suspect's region rounds to.
        """
        if not error.bound or met.local is None:
            return error
        kinds = [dtype_name(met.reference), dtype_name(met.local), *self._lowered.types(met.name, region)]
        kinds += [self._types[name] for i in region for name in self._cut.reads[i] if name in self._types]
        if self._mode == "executed":  # rounding that the graph states may be gone, or be done elsewhere
            kinds += self._comparer.places.place(met.name).types
        longest = made.terms(self._shapes.get, met.reference.size)
        scale, read = self._scales[met.name], self._read_scales(region)
        bound, coarse = (
            self._rule.bound(made, (*kinds, *more), longest, scale, read, optimised=self._mode == "executed")
            + lost_below(met.reference, (*kinds, *more))
            for more in ((), low)
        )
        return replace(error, bound=bound, coarse=coarse)

    def _read_scales(self, region: Sequence[int]) -> list[Scale]:
        """The scales of the floating tensors that a region reads; of graph inputs nothing is known."""
        made = {name for i in region for name in self._cut.nodes[i].output}
        read = {name for i in region for name in self._cut.reads[i]} - made - self._cut.initializers.keys()
        common = self._comparer.sides[0].common
        return [
            self._scales.get(common(name), Scale(math.nan, math.nan))
            for name in sorted(read)
            if name not in self._types or unit_roundoff([self._types[name]])
        ]

    def _made(self, met: Met, region: Sequence[int]) -> Made:
        """The nodes that make a tensor, of the side of which these are more."""
        between = self._comparer.places.between(met.name, self.errors, self._inputs_shapes)
        common = self._comparer.sides[0].common
        return made_by(steps_of(self._cut, region, common, self._inferred), between)

    def _coarser(self, met: Met, region: Sequence[int]) -> float:
        """How many times as coarse as the suspect's types those are in which the reference has what a region reads."""
        types = [self._types[name] for i in region for name in self._cut.reads[i] if name in self._types]
        own = unit_roundoff(types)
        return max(1.0, unit_roundoff(self._walk.read_types(met.tensor)) / own) if own else 1.0

    def _tested(self, met: Met, error: Error, region: Sequence[int], made: Made) -> Error:
        """The error with what its condition explains, where sides that compute differently disagree: how far the
        result moves when the inputs are rounded once."""
        mixed = self.has_mixed(self._comparer.places.place(met.name), self._comparer.sides[0].own(met.name), region)
        in_question = error.bound < error.rel < math.inf and error.bound == error.coarse and not error.onset
        if not in_question or error.note or (self._plan.alike(met.name) and not mixed) or not self._tests:
            return error
        self._tests -= 1
        if not error.bound:  # values that do not round
            return error.within(error.rel) if self._walk.decided(met) else error
        few = LUCK / math.sqrt(max(1, met.reference.size))  # of single elements one try says little
        longest = made.terms(self._shapes.get, met.reference.size)
        ops = [self._cut.nodes[i].op_type for i in region]
        times = nudges(ops, longest, one_backend=self._rule.one_backend) * self._coarser(met, region)
        return replace(error, condition=(MOVED + few) * self._walk.response(met, times=times))


def _is_finite(array: Array) -> bool:
    return not is_floating(dtype_name(array)) or bool(np.isfinite(array.astype(np.float32)).all())
