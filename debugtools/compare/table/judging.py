"""Verdicts and findings of a layer, from its comparison and from what the layers before it tell."""

import math
from collections.abc import Mapping, Sequence

from msgspec import UNSET

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison, only_hidden
from layerwise._tool.debugtools.compare.arithmetic.tolerance import rounding_bound
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.table.condition import Conditions
from layerwise._tool.debugtools.compare.table.limits import DRAWN, Known, StepLimits
from layerwise._tool.debugtools.compare.table.places import Place, Places
from layerwise._tool.debugtools.compare.table.settling import Seen, Settler, note, of_two_runs
from layerwise._tool.debugtools.compare.table.step import MOVED, scale_of, scale_of_row

LEAP = 10.0
_AGAIN = 4.0  # times as far that small differences may be driven apart in another evaluation


class PairErrors:
    """The errors of one pair of runners in one iteration so far: from them, amplification and findings.

    one_backend: both sides run on the same one. conditions: of the model's nodes, where they can be told. inputs: the
    shapes of the graph's.
    everything: all tensors are observed, so that what is not known of a node's inputs one side alone has.
    """

    def __init__(
        self, places: Places, *, one_backend: bool, conditions: Conditions | None = None, everything: bool = False,
        inputs: Mapping[str, tuple[int, ...]] | None = None,
    ) -> None:  # fmt: skip
        self._places, self._conditions = places, conditions
        self._known: dict[str, Known] = {}
        self._limits = StepLimits(places, self._known, inputs or {}, one_backend=one_backend)
        self._settler = Settler(places, self._limits, conditions, everything=everything)

    def judge(
        self,
        name: str,
        result: Comparison,
        mode: str,
        *,
        settled: bool = False,
        arrays: tuple[Array, Array] | None = None,
        seen: Seen | None = None,
    ) -> tuple[float | None, str]:
        """Take in a tensor's comparison; return its amplification (None if unknown) and its finding.

        Where rounding decides, an error that it does not explain from those of the inputs fails too.
        A failure that other random numbers explain loses its verdicts: its finding is "skip". A graph output keeps
        them, and its finding is "random". The note says which operator draws. settled: its verdict stands.
        arrays: the tensor on both sides, for nodes that are run again. seen: by it the step from the inputs is judged.
        """
        place = self._places.place(name)
        inputs, complete = self._inputs(place)
        error = max((known.rel_l2 for known in inputs), default=0.0)
        rel_l2 = result.rel_l2 if result.rel_l2 is not None else math.nan
        drawn = self._is_drawn(name, inputs, rel_l2)
        asked = not drawn and not settled and "simple" in result.verdicts
        limit = self._limits.of(name, result, mode, place, inputs) if asked else None
        step = self._settler.settle(name, result, mode, inputs, limit, arrays if asked else None)
        if seen is not None and asked and result.verdicts["simple"]:
            step = self._settler.seen(name, result, seen, place, inputs) or step
        finding = self._finding(result, inputs, error, rel_l2, complete and not of_two_runs(mode, inputs))
        finding = "leap" if step.unexplained and finding in ("", "propagated") else finding
        finding = "ill-conditioned" if step.by_own and not finding else finding
        finding = self._explained(name, result, drawn, finding)
        bound = rounding_bound((*result.dtypes, *place.types), place.depth)
        bad = _is_bad(finding, result.passed, rel_l2, bound)
        self._keep(name, seen or Seen(result, mode, arrays), bad, drawn, place, step.enlarged)
        amplification = rel_l2 / error if complete and error > 0 and math.isfinite(rel_l2) else None
        return amplification, finding

    def _keep(self, name: str, seen: Seen, bad: bool, drawn: bool, place: Place, enlarged: bool) -> None:
        """Keep what later rows need of a tensor."""
        result = seen.result
        rel_l2 = result.rel_l2 if result.rel_l2 is not None else math.nan
        self._known[name] = Known(
            rel_l2, finite_sides(result), bad, drawn, seen.mode, place.depth, scale_of(result), result.shapes[1],
            result.dtypes, enlarged,
        )  # fmt: skip
        if self._conditions and seen.arrays is not None:
            self._conditions.keep(name, *seen.arrays, same=rel_l2 == 0)

    def enlarged(self, name: str) -> float:
        """The relative L2 error that is explained by nodes that make small differences large; 0 where none do."""
        known = self._known.get(name)
        return _AGAIN * MOVED * known.rel_l2 if known is not None and known.enlarged else 0.0

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

    def _inputs(self, place: Place) -> tuple[list[Known], bool]:
        """What is known of a node's inputs, or of the nearest tensors before them; whether it is all of the inputs."""
        direct = [self._limits.direct(read) for read in place.reads or ()]
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
        note(result, f"from random numbers: {source} draws its own on each side")
        if output:
            return finding if finding in ("nan", "overflow") else "random"
        result.verdicts.clear()
        return "skip"

    def _nearest(self, place: Place) -> list[Known]:
        """What is known of the nearest observed tensors upstream."""
        found, seen, queue = [], set(place.reads or ()), list(place.reads or ())
        while queue:
            name = queue.pop()
            known = self._limits.direct(name)
            if known is not None:
                found.append(known)
                continue
            if self._places.draws(name):
                found.append(DRAWN)
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
    if a is None or b is None or only_hidden(result):
        return None
    for side, mine, other in ((0, a, b), (1, b, a)):
        if mine.infs > other.infs:
            return side, "overflow"
        if mine.nans > other.nans:
            return side, "nan"
    return (0, "nan") if a.nans and not result.passed else None
