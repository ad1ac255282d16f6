"""Verdicts and findings of a layer, from its comparison and from what the layers before it tell."""

import math
from collections.abc import Sequence

from msgspec import UNSET, Struct

from layerwise._tool.debugtools.compare.arithmetic.metrics import Comparison
from layerwise._tool.debugtools.compare.arithmetic.tolerance import rounding_bound
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.table.between import Between, Step
from layerwise._tool.debugtools.compare.table.condition import Conditions
from layerwise._tool.debugtools.compare.table.places import Place, Places
from layerwise._tool.debugtools.compare.table.step import (
    MOVED,
    Scale,
    explained_error,
    scale_of,
    scale_of_row,
    smallest,
    step_bound,
)

LEAP = 10.0


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


class Settled(Struct, frozen=True):
    """What the step from a tensor's inputs says of its error. unexplained: it fails by that; enlarged: a node makes
    small differences large, its own or one before it; by_own: its own does.
    """

    unexplained: bool = False
    enlarged: bool = False
    by_own: bool = False


_EXACT = Known(0.0, (True, True), False)
_DRAWN = Known(0.0, (True, True), False, drawn=True)


class PairErrors:
    """The errors of one pair of runners in one iteration so far: from them, amplification and findings.

    one_backend: both sides run on the same one. conditions: of the model's nodes, where they can be told.
    """

    def __init__(self, places: Places, *, one_backend: bool, conditions: Conditions | None = None) -> None:
        self._places, self._one_backend, self._conditions = places, one_backend, conditions
        self._known: dict[str, Known] = {}

    def judge(self, name: str, result: Comparison, mode: str, *, settled: bool = False) -> tuple[float | None, str]:
        """Take in a tensor's comparison; return its amplification (None if unknown) and its finding.

        Where rounding decides, an error that it does not explain from those of the inputs fails too.
        A failure that other random numbers explain loses its verdicts: its finding is "skip". A graph output keeps
        them, and its finding is "random". The note says which operator draws. settled: its verdict stands.
        """
        place = self._places.place(name)
        inputs, complete = self._inputs(place)
        error = max((known.rel_l2 for known in inputs), default=0.0)
        rel_l2 = result.rel_l2 if result.rel_l2 is not None else math.nan
        drawn = self._is_drawn(name, inputs, rel_l2)
        asked = not drawn and not settled and "simple" in result.verdicts
        limit = self._limit(name, result, mode, place, inputs) if asked else None
        step = self._settle(name, result, mode, inputs, limit)
        finding = self._finding(result, inputs, error, rel_l2, complete)
        finding = "leap" if step.unexplained and finding in ("", "propagated") else finding
        finding = "ill-conditioned" if step.by_own and not finding else finding
        finding = self._explained(name, result, drawn, finding)
        bound = rounding_bound((*result.dtypes, *place.types), place.depth)
        bad = _is_bad(finding, result.passed, rel_l2, bound)
        scale, shape = scale_of(result), result.shapes[1]
        known = Known(
            rel_l2, finite_sides(result), bad, drawn, mode, place.depth, scale, shape, result.dtypes,
            step.enlarged,
        )  # fmt: skip
        self._known[name] = known
        amplification = rel_l2 / error if complete and error > 0 and math.isfinite(rel_l2) else None
        return amplification, finding

    def enlarged(self, name: str) -> float:
        """The relative L2 error that is explained by nodes that make small differences large; 0 where none do."""
        known = self._known.get(name)
        return MOVED * known.rel_l2 if known is not None and known.enlarged else 0.0

    def recall(self, row: LayerRow) -> None:
        """Take in a row that an earlier attempt of the job made."""
        place = self._places.place(row.tensor)
        rel_l2 = math.nan if row.rel_l2 is None else row.rel_l2
        finite = row.nan[0] + row.inf[0] == 0, row.nan[1] + row.inf[1] == 0
        bad = _is_bad(row.finding, row.passed, rel_l2, rounding_bound((*row.dtype, *place.types), place.depth))
        drawn = self._is_drawn(row.tensor, self._inputs(place)[0], rel_l2)
        scale, shape = scale_of_row(row), row.shape if row.shape2 is UNSET else row.shape2
        enlarged = bool(row.passed) and rel_l2 > rounding_bound((*row.dtype, *place.types), place.depth)
        self._known[row.tensor] = Known(
            rel_l2, finite, bad, drawn, row.mode, place.depth, scale, shape, row.dtype, enlarged
        )

    def _settle(
        self, name: str, result: Comparison, mode: str, inputs: Sequence[Known], limit: float | None
    ) -> Settled:
        """Correct the verdict by what the step from its inputs explains."""
        if limit is None or result.rel_l2 is None or not math.isfinite(result.rel_l2):
            return Settled()
        modes = {mode, *(known.mode for known in inputs if known.mode)}
        mixed = modes >= {"plain", "every"}
        unexplained = result.rel_l2 > limit and not mixed
        if result.verdicts["simple"] and not unexplained:
            return Settled(enlarged=any(known.enlarged for known in inputs))
        if any(known.bad for known in inputs):
            return Settled(self._fail(result, limit, unexplained))
        if any(known.enlarged for known in inputs) and result.rel_l2 <= limit:
            result.verdicts["simple"] = True
            return Settled(enlarged=True)
        error = max((known.rel_l2 for known in inputs), default=0.0)
        moved = self._conditions.explained(name, error) if self._conditions else 0.0
        if result.rel_l2 <= moved:
            result.verdicts["simple"] = True
            note = f"its node makes small differences large: rounding its inputs moves it by up to {moved:.3g}"
            result.note = f"{result.note}; {note}" if result.note else note
            return Settled(enlarged=True, by_own=True)
        return Settled(self._fail(result, limit, unexplained))

    def _fail(self, result: Comparison, limit: float, unexplained: bool) -> bool:
        if unexplained and result.verdicts["simple"]:
            result.verdicts["simple"] = False
            note = f"rel L2 {result.rel_l2:.3g}, of which rounding explains {limit:.3g}"
            result.note = f"{result.note}; {note}" if result.note else note
            return True
        return False

    def _limit(self, name: str, result: Comparison, mode: str, place: Place, inputs: Sequence[Known]) -> float | None:
        """The relative L2 error that a tensor's inputs' errors and one step explain; None where that is not asked."""
        if not inputs or not result.rel_l2:
            return None
        between = self._places.between(name, self._known)
        if between is not None:
            inputs = [*inputs, *(self._known[read] for read in between.reads if read in self._known)]
        error = max(known.rel_l2 for known in inputs)
        scales = [known.scale for known in inputs if known.mode]
        types, floor = place.types, result.rule.floor
        steps = max(1, place.depth - max(known.depth for known in inputs)) if between is None else between.longest
        if mode == "every":  # nothing is rounded but where the graphs say so
            behind = self._places.rounded_between(name, self._known)
            types = (*behind, *(kind for known in inputs for kind in known.types))
            floor = smallest((*result.dtypes, *types)) * math.sqrt(steps)
        terms = self._longest(name, between, result)
        rounding = step_bound((*result.dtypes, *types), terms, steps, one_backend=self._one_backend and between is None)
        ops = (place.op,) if between is None else between.ops
        return explained_error(result, ops, rounding, error, scales, floor, terms)

    def _longest(self, name: str, between: Between | None, result: Comparison) -> int:
        """The length of the longest sum that makes a tensor."""

        def shape(read: str) -> tuple[int, ...] | None:
            return self._known[read].shape if read in self._known else None

        size = math.prod(result.shapes[1])
        if between is not None:
            return between.terms(shape, size)
        node, weights = self._places.node(name)
        return 1 if node is None else Step(node, weights, str).terms(shape, size)

    def _inputs(self, place: Place) -> tuple[list[Known], bool]:
        """What is known of a node's inputs, or of the nearest tensors before them; whether it is all of the inputs."""
        direct = [self._direct(read) for read in place.reads or ()]
        if place.i >= 0 and place.reads is not None and all(known is not None for known in direct):
            return [known for known in direct if known is not None], True
        return self._nearest(place), False

    def _is_drawn(self, name: str, inputs: Sequence[Known], rel_l2: float) -> bool:
        """Whether other random numbers may be in a tensor; where both sides have the same bits there are none."""
        return rel_l2 != 0 and (any(known.drawn for known in inputs) or self._places.draws(name))

    def _explained(self, name: str, result: Comparison, drawn: bool, finding: str) -> str:
        """The finding of a tensor whose failure random numbers may explain."""
        output = self._places.is_output(name)
        source = self._places.random(name) if result.passed is False and (drawn or output) else ""
        if not source:
            return finding
        note = f"from random numbers: {source} draws its own on each side"
        result.note = f"{result.note}; {note}" if result.note else note
        if output:
            return finding if finding in ("nan", "overflow") else "random"
        result.verdicts.clear()
        return "skip"

    def _direct(self, name: str) -> Known | None:
        return _EXACT if self._places.is_input(name) else self._known.get(name)

    def _nearest(self, place: Place) -> list[Known]:
        """What is known of the nearest observed tensors upstream."""
        found, seen, queue = [], set(place.reads or ()), list(place.reads or ())
        while queue:
            name = queue.pop()
            known = self._direct(name)
            if known is not None:
                found.append(known)
                continue
            if self._places.draws(name):
                found.append(_DRAWN)
            fresh = [read for read in self._places.place(name).reads or () if read not in seen]
            seen.update(fresh)
            queue += fresh
        return found

    def _finding(self, result: Comparison, inputs: Sequence[Known], error: float, rel_l2: float, complete: bool) -> str:
        upstream = any(known.bad for known in inputs)
        bad = _non_finite(result)
        if bad is not None:
            side, finding = bad
            return finding if all(known.finite[side] for known in inputs) else "propagated"
        if result.passed:
            return ""
        if complete and rel_l2 >= LEAP * error and rel_l2 > rounding_bound(result.dtypes):
            return "leap"
        return "propagated" if upstream and result.passed is False else ""


def _is_bad(finding: str, passed: bool | None, rel_l2: float, bound: float) -> bool:
    return finding not in ("", "ill-conditioned") or (passed is False and not rel_l2 <= bound)


def finite_sides(result: Comparison) -> tuple[bool, bool]:
    """Of each side, whether all its elements are finite."""
    first, second = (side is None or side.nans + side.infs == 0 for side in result.sides)
    return first, second


def _non_finite(result: Comparison) -> tuple[int, str] | None:
    """The side that holds NaN or Inf where the other does not (or NaN on both), and what it would be called."""
    a, b = result.sides
    if a is None or b is None:
        return None
    for side, mine, other in ((0, a, b), (1, b, a)):
        if mine.infs > other.infs:
            return side, "overflow"
        if mine.nans > other.nans:
            return side, "nan"
    return (0, "nan") if a.nans else None
