"""From a tensor that was met to its row in the layer table, and to what it says of its node."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison
from layerwise._tool.debugtools.compare.arithmetic.tolerance import QUANTISED, unit_roundoff
from layerwise._tool.debugtools.compare.quantised.coarsest import rounded_to
from layerwise._tool.debugtools.compare.result import Saturated
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.sides.engine import asked_types
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.table.layers import layer_row
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.compare.table.places import Place
from layerwise._tool.debugtools.compare.table.rounding import InferredShapes, Made, StepRule, made_by, steps_of
from layerwise._tool.debugtools.compare.table.step import (
    LUCK,
    MOVED,
    Scale,
    lost_below,
    nudges,
    scale_of,
    scale_of_array,
)
from layerwise._tool.debugtools.locate.inside import enter
from layerwise._tool.debugtools.locate.lowered import Lowered, next_steps
from layerwise._tool.debugtools.locate.plan import LocatePlan
from layerwise._tool.debugtools.locate.rows import Inside
from layerwise._tool.debugtools.locate.suspects import Suspect, diagnose
from layerwise._tool.debugtools.locate.tensor_error import Error, error_from, error_of
from layerwise._tool.debugtools.locate.truth import LocalTruths
from layerwise._tool.debugtools.locate.walk import Met, Walk

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.quantised.ledger import Ledger
    from layerwise._tool.debugtools.locate.formats import ReferenceFormats
    from layerwise._tool.surgery.cut.segments import GraphCut

Judged = tuple[float | None, str]
_MOST_TESTS = 100  # of what rounding the inputs does, an iteration; each opens a session
_DEAR_TESTS = 10  # the same where each builds an engine


class Reader:
    """Reads the tensors of one iteration, as `walk` meets them.

    plan: of the walk. cut: the suspect's model. mode: how the suspect is observed, as the layer table has it.
    bodies: whether bodies of suspects are looked into. truths: where they are asked for.
    ledger: of a quantised suspect; formats: of a quantised reference. saturation: tells of a tensor, of its error and
    of what formats explain of it, whether kernels saturate there. `saturated`: what was found by that.
    """

    def __init__(
        self,
        iteration: int,
        comparer: Comparer,
        plan: LocatePlan,
        walk: Walk,
        cut: "GraphCut",
        mode: str,
        bodies: bool,
        truths: LocalTruths | None = None,
        ledger: "Ledger | None" = None,
        formats: "ReferenceFormats | None" = None,
        saturation: Callable[[Met, float, float], Saturated | None] | None = None,
    ) -> None:
        self._saturation = saturation
        self.saturated: Saturated | None = None
        self._truths, self._ledger, self._formats = truths, ledger, formats
        self._iteration, self._comparer, self._plan, self._walk = iteration, comparer, plan, walk
        self._cut, self._mode, self._bodies = cut, mode, bodies
        runner = comparer.sides[0].spec
        self._asked, self._tests = asked_types(runner), _DEAR_TESTS if runner.kind == "trt" else _MOST_TESTS
        if ledger is not None or formats is not None:
            self._tests *= 4  # what a format explains takes a test at most nodes of small tensors
        suspect = comparer.sides[0]
        assert isinstance(suspect, ModelSide)
        self._lowered = Lowered(suspect, comparer.sides[1], [point.name for point in plan.points.values()])
        backends = {side.backend for side in comparer.sides[:2]}
        self._rule = StepRule(len(backends) == 1)
        self._inputs_shapes = {name: array.shape for name, array in walk.feed.items()}
        self._shapes = dict(self._inputs_shapes)  # by the comparison's names
        self._inferred = InferredShapes(cut, self._inputs_shapes)
        self._pair_errors = comparer.pair_errors((0, 1), walk.feed)
        self._errors: dict[str, float] = {}
        self._scales: dict[str, Scale] = {}  # of the reference's tensors
        self._types: dict[str, str] = {}  # of the suspect's tensors, in which it gets the reference's too
        self._mixed: set[str] = set()  # of the suspect's tensors those that the reference has in another type

    def read(self, met: Met) -> tuple[LayerRow, Suspect | None]:
        """Return the tensor's row, and what there is to suspect."""
        met = self._lowered.met(met)
        place, region = self._comparer.places.place(met.name), self._plan.region(met.name)
        own = self._comparer.sides[0].own(met.name)
        self._shapes[met.name] = met.reference.shape
        if self._ledger is not None:
            self._ledger.saw(own, met.reference, self._comparer.sides[1].own(met.name))
        if self._formats is not None and met.accumulated is not None:
            self._formats.saw(met.name, met.accumulated, own)
        if met.accumulated is not None:
            self._types[own] = dtype_name(met.accumulated)
            if self._types[own] != dtype_name(met.reference):
                self._mixed.add(own)
        result, accumulated, judged = self._accumulated(met, place)
        self._scales[met.name] = scale_of(result) if result.totals is not None else scale_of_array(met.reference)
        local = self._local(met, result, region)
        saturated = self._saturated(met, local, region)
        if saturated is not None and saturated.side != 0 and local is not None:
            local = replace(local, rel=saturated.left)  # of the reference as it ought to be
        word = "kernel" if met.failure else diagnose(local, accumulated, *judged)
        if self._is_format(word, local, accumulated, self._noise(met, region)):
            word = "clean"
        mixed = self._has_mixed(place, own, region)
        if word == "kernel" and local is not None and not met.failure and mixed and _is_carried(result, local):
            word = "clean"
        if word == "propagated" and self._only_whole(accumulated, region):
            word = "kernel"
        mine = saturated if saturated is not None and saturated.side == 0 else None
        word = "saturation" if mine is not None else word
        row = self._row(met, place, result, judged)
        sizes = (local.rel, local.abs) if local else (None, None)
        row = structs.replace(row, local=sizes[0], local_abs=sizes[1], diagnosis=word)
        if self._truths is not None:
            row = structs.replace(row, truth=self._truths.of(met, accumulated.rel if accumulated else None))
        suspect = Suspect(
            place,
            met.name,
            word,
            local,
            accumulated,
            judged[0],
            region,
            self._iteration,
            self._inputs(region),
            met.failure,
            saturated=mine,
        )
        if accumulated is not None:
            self._errors[met.name] = accumulated.rel
        held = self._ledger.of(own) if self._ledger is not None else None
        if held is not None:
            here = held.word and (own == held.tensor or held.role != "activation")
            row = structs.replace(row, quantised=held, diagnosis="quantisation" if here else row.diagnosis)
        suspect.truth = row.truth
        if not self._is_suspect(suspect, mixed):
            return row, None
        suspect.inside = self._inside(met, suspect)
        return row, suspect

    def _saturated(self, met: Met, local: Error | None, region: Sequence[int]) -> Saturated | None:
        if self._saturation is None or local is None or local.onset or local.note:
            return None
        found = self._saturation(met, local.rel, self._noise(met, region))
        if found is not None and (self.saturated is None or found.error > self.saturated.error):
            self.saturated = found
        return found

    def _noise(self, met: Met, region: Sequence[int]) -> float:
        """What the formats of the quantised side explain where a tensor is made."""
        if self._formats is not None:
            return self._formats.noise(met.name)
        return self._ledger.noise(region) if self._ledger is not None else 0.0

    def _is_format(self, word: str, local: Error | None, accumulated: Error | None, noise: float) -> bool:
        """Whether a quantised tensor's error is that of its format, though it is more than rounding in its type.

        So it is too where the tensor is right in the whole run, and wrong only on what the other side has rounded.
        """
        if local is None or local.onset or not noise:
            return False
        own = accumulated is not None and accumulated.rel <= local.bound
        if local.beyond:
            return own and word == "kernel" and not local.note
        return word == "ill-conditioned" or (word == "propagated" and own)

    def _has_mixed(self, place: Place, own: str, region: Sequence[int]) -> bool:
        """Whether a tensor, or what makes it, is of other types on the other side."""
        reads = (name for i in region for name in self._cut.reads[i])
        return len(set(place.types)) > 1 or not self._mixed.isdisjoint((own, *reads))

    def _only_whole(self, accumulated: Error | None, region: Sequence[int]) -> bool:
        """Whether an engine goes wrong here though its inputs are right: a part that is built alone fuses otherwise."""
        seen = self._mode == "executed" and self._comparer.sides[0].spec.kind == "trt"
        return seen and accumulated is not None and self._inputs(region) <= accumulated.bound

    def _inside(self, met: Met, suspect: Suspect) -> Inside | None:
        """What is at fault in the node's body, where that was asked for."""
        pair = self._plan.pair(met.name) if self._bodies and self._mode != "executed" else None
        return enter(pair, suspect, self._walk) if pair else None

    def _is_suspect(self, found: Suspect, mixed: bool) -> bool:
        """Alike runners should give the same bits, so that any local error says something; others round their way, and
        so do sides in different types (`mixed`)."""
        alike = self._plan.same_runner and not mixed and self._ledger is None and self._formats is None
        differs = alike and found.local is not None and found.local.rel > 0
        return differs or found.word not in ("clean", "propagated")

    def _row(self, met: Met, place: Place, result: Comparison, judged: Judged) -> LayerRow:
        other = self._comparer.sides[1].own(met.name)
        return layer_row(self._iteration, (0, 1), met.name, other, self._mode, place, result, judged)

    def _accumulated(self, met: Met, place: Place) -> tuple[Comparison, Error | None, Judged]:
        if met.accumulated is None:
            return self._not_reached(met), None, (None, "")
        result = self._comparer.compare(met.name, met.accumulated, met.reference)
        judged = self._pair_errors.judge(met.name, result, self._mode, arrays=(met.accumulated, met.reference))
        error = error_from(result, met.accumulated, met.reference, (), place.depth)
        error = error.allowing((*self._asked, *place.types), place.depth)
        if error.bound:
            lost = lost_below(met.reference, (*result.dtypes, *place.types)) * math.sqrt(place.depth)
            error = replace(error, bound=error.bound + lost, coarse=error.coarse + lost)
        if error.bound and result.rule.auto and result.passed and not judged[1]:  # by all that the layer table knows
            error = error.within(error.rel)
        return result, error, judged

    def _not_reached(self, met: Met) -> Comparison:
        """The row of a tensor that the suspect failed before."""
        kind, shape = dtype_name(met.reference), met.reference.shape
        rule = self._comparer.tolerances.rule(met.name)
        return Comparison((kind, kind), (shape, shape), rule, note="the suspect fails before this tensor")

    def _local(self, met: Met, result: Comparison, region: Sequence[int]) -> Error | None:
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
        kinds = (*self._asked, *self._lowered.types(met.name, region))
        error = self._tested(met, error.allowing(kinds, len(region)), region, made)
        return self._quantised(met, error, region)

    def _quantised(self, met: Met, error: Error, region: Sequence[int]) -> Error:
        """The error with what the formats of a quantised side explain: their own rounding, and as far as it goes
        when the region carries it on.
        """
        noise = self._noise(met, region)
        if not noise or not error.bound or error.onset:
            return error
        explained = QUANTISED * noise
        if explained < error.rel < math.inf and self._tests:
            self._tests -= 1
            few = LUCK / math.sqrt(max(1, met.reference.size))  # of single elements one try says little
            explained = max(explained, (QUANTISED + few) * self._walk.response(met, noise))
        explained += self._left_out(met, region)
        return error.within(explained)

    def _left_out(self, met: Met, region: Sequence[int]) -> float:
        """What the codes of a quantised reference do not reach, as far as its inputs have moved beyond what these were
        made for."""
        if self._formats is None or met.local is None:
            return 0.0
        beyond = self._formats.beyond(met.name, met.local)
        return beyond if beyond <= QUANTISED * self._inputs(region) else 0.0

    def _stepwise(self, met: Met, error: Error, region: Sequence[int], made: Made, low: Sequence[str]) -> Error:
        """The error with what rounding in the region's nodes explains, by the rule of the layer table.

        low: what the suspect's region rounds to.
        """
        if not error.bound or met.local is None:
            return error
        kinds = [dtype_name(met.reference), dtype_name(met.local)]
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
        between = self._comparer.places.between(met.name, self._errors, self._inputs_shapes)
        common = self._comparer.sides[0].common
        return made_by(steps_of(self._cut, region, common, self._inferred), between)

    def _tested(self, met: Met, error: Error, region: Sequence[int], made: Made) -> Error:
        """The error with what its condition explains, where sides that compute differently disagree: how far the
        result moves when the inputs are rounded once."""
        in_question = error.bound < error.rel < math.inf and error.bound == error.coarse > 0 and not error.onset
        mixed = self._has_mixed(self._comparer.places.place(met.name), self._comparer.sides[0].own(met.name), region)
        if not in_question or (self._plan.alike(met.name) and not mixed):
            return error
        if not self._tests:
            return error
        self._tests -= 1
        few = LUCK / math.sqrt(max(1, met.reference.size))  # of single elements one try says little
        longest = made.terms(self._shapes.get, met.reference.size)
        ops = [self._cut.nodes[i].op_type for i in region]
        times = nudges(ops, longest, one_backend=self._rule.one_backend)
        return replace(error, condition=(MOVED + few) * self._walk.response(met, times=times))

    def _inputs(self, region: Sequence[int]) -> float:
        """The largest error of what a region reads."""
        names = (self._comparer.sides[0].common(name) for i in region for name in self._cut.reads[i])
        return max((self._errors.get(name, 0.0) for name in names), default=0.0)


def _is_carried(result: Comparison, local: Error) -> bool:
    """Whether whole numbers, such as places of the largest, differ for what was read alone, as the layer table says:
    each side gives what follows from its own values.
    """
    return not local.bound and not local.note and bool(result.rule.auto and result.passed)
