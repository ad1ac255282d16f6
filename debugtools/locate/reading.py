"""From a tensor that was met to its row in the layer table, and to what it says of its node."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import structs

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.tensors import dtype_name
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.result import Saturated
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.sides.engine import asked_types
from layerwise._tool.debugtools.compare.sides.side import ModelSide
from layerwise._tool.debugtools.compare.table.layers import layer_row
from layerwise._tool.debugtools.compare.table.pairs import Comparer
from layerwise._tool.debugtools.compare.table.places import Place
from layerwise._tool.debugtools.compare.table.step import lost_below
from layerwise._tool.debugtools.locate.inside import enter
from layerwise._tool.debugtools.locate.lowered import Lowered
from layerwise._tool.debugtools.locate.plan import LocatePlan
from layerwise._tool.debugtools.locate.region_error import RegionErrors
from layerwise._tool.debugtools.locate.rows import Inside
from layerwise._tool.debugtools.locate.suspects import Suspect, diagnose
from layerwise._tool.debugtools.locate.tensor_error import Error, error_from
from layerwise._tool.debugtools.locate.truth import LocalTruths
from layerwise._tool.debugtools.locate.walk import Met, Walk

if TYPE_CHECKING:
    from layerwise._tool.debugtools.compare.quantised.ledger import Ledger
    from layerwise._tool.debugtools.locate.formats import ReferenceFormats
    from layerwise._tool.surgery.cut.segments import GraphCut

Judged = tuple[float | None, str]


class Reader:
    """Reads the tensors of one iteration, as `walk` meets them.

    compared: a tensor with its reference. plan: of the walk. cut: the suspect's model. mode: how the suspect is
    observed, as the layer table has it. bodies: whether bodies of suspects are looked into. truths: where asked for.
    ledger: of a quantised suspect; formats: of a quantised reference. saturation: tells of a tensor, of its error and
    of what formats explain of it, whether kernels saturate there. `saturated`: what was found by that.
    """

    def __init__(
        self,
        iteration: int,
        comparer: Comparer,
        compared: Callable[[str, Array, Array], Comparison],
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
        self._compared = compared
        self._mode, self._bodies = mode, bodies
        suspect = comparer.sides[0]
        assert isinstance(suspect, ModelSide)
        self._asked = asked_types(suspect.spec)
        self._lowered = Lowered(suspect, comparer.sides[1], [point.name for point in plan.points.values()])
        self._local = RegionErrors(comparer, plan, walk, cut, mode, self._lowered, ledger, formats)
        self._pair_errors = comparer.pair_errors((0, 1), walk.feed)

    def read(self, met: Met) -> tuple[LayerRow, Suspect | None]:
        """Return the tensor's row, and what there is to suspect."""
        met = self._lowered.met(met)
        place, region = self._comparer.places.place(met.name), self._plan.region(met.name)
        own = self._comparer.sides[0].own(met.name)
        self._local.saw(met, own)
        result, accumulated, judged = self._accumulated(met, place)
        local = self._local.of(met, result, region)
        saturated = self._saturated(met, local, region)
        if saturated is not None and saturated.side != 0 and local is not None:
            local = replace(local, rel=saturated.left)  # of the reference as it ought to be
        word = "kernel" if met.failure else diagnose(local, accumulated, *judged)
        if self._is_format(word, local, accumulated, self._local.noise(met, region)):
            word = "clean"
        mixed = self._local.has_mixed(place, own, region)
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
            self._local.inputs(region),
            met.failure,
            saturated=mine,
        )
        if accumulated is not None:
            self._local.errors[met.name] = accumulated.rel
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
        found = self._saturation(met, local.rel, self._local.noise(met, region))
        if found is not None and (self.saturated is None or found.error > self.saturated.error):
            self.saturated = found
        return found

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

    def _only_whole(self, accumulated: Error | None, region: Sequence[int]) -> bool:
        """Whether an engine goes wrong here though its inputs are right: a part that is built alone fuses otherwise."""
        seen = self._mode == "executed" and self._comparer.sides[0].spec.kind == "trt"
        return seen and accumulated is not None and self._local.inputs(region) <= accumulated.bound

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
        result = self._compared(met.name, met.accumulated, met.reference)
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


def _is_carried(result: Comparison, local: Error) -> bool:
    """Whether whole numbers, such as places of the largest, differ for what was read alone, as the layer table says:
    each side gives what follows from its own values.
    """
    return not local.bound and not local.note and bool(result.rule.auto and result.passed)
