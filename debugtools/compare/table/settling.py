"""Whether the step from a tensor's inputs explains its error; where that is in question, its node is run by itself."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.table.condition import Conditions
from layerwise._tool.debugtools.compare.table.limits import Known, StepLimits
from layerwise._tool.debugtools.compare.table.places import Place, Places

_FUSED = (1, 2, 3, 4, 6, 8, 12, 16)  # nodes that a backend may have made one of
_ENLARGES = "its node makes small differences large: rounding its inputs"
CARRIED = "its node makes small differences large: each side gives what follows from what it read"


class Settled(Struct, frozen=True):
    """What the step from a tensor's inputs says of its error. unexplained: it fails by that; enlarged: more than that
    of so many nodes usually is, for a node that makes small differences large or that adds up long sums, its own or one
    before it; by_own: its own node makes small differences large.
    """

    unexplained: bool = False
    enlarged: bool = False
    by_own: bool = False


class Seen(NamedTuple):
    """A graph output as it was observed, in the run that its node's inputs are from; its row is the plain run's."""

    result: Comparison
    mode: str
    arrays: tuple[Array, Array] | None


class Settler:
    """Of one pair of runners in one iteration; the parameters are those of `PairErrors`."""

    def __init__(self, places: Places, limits: StepLimits, conditions: Conditions | None, *, everything: bool) -> None:
        self._places, self._limits, self._conditions, self._everything = places, limits, conditions, everything

    def settle(
        self,
        name: str,
        result: Comparison,
        mode: str,
        inputs: Sequence[Known],
        limit: float | None,
        arrays: tuple[Array, Array] | None,
    ) -> Settled:
        """Correct the verdict by what the step from its inputs explains."""
        if limit is None or result.rel_l2 is None or not math.isfinite(result.rel_l2):
            carried = self._carried(name, result, inputs, arrays)
            return Settled(enlarged=carried, by_own=carried)
        mixed = of_two_runs(mode, inputs)
        unexplained = result.rel_l2 > limit and not mixed
        if result.rel_l2 <= limit and self._off_alone(name, result, mode, inputs, arrays):
            return Settled(unexplained=True)
        if result.verdicts["simple"] and not unexplained:
            return Settled(enlarged=any(known.enlarged for known in inputs))
        if any(known.bad for known in inputs):
            return Settled(self._fail(result, limit, unexplained))
        if any(known.enlarged for known in inputs) and result.rel_l2 <= limit:
            result.verdicts["simple"] = True
            return Settled(enlarged=True)
        error = max((known.rel_l2 for known in inputs), default=0.0)
        step = self._limits.of(name, result, mode, self._places.place(name), inputs, exact=True) or 0.0
        if result.rel_l2 <= step and not result.over and not mixed:
            result.verdicts["simple"] = True
            return Settled(enlarged=True)
        moved = 0.0
        for fused in _FUSED if mixed else _FUSED[:1]:
            if result.rel_l2 > moved:
                moved = max(moved, self._explained_by_node(name, result, arrays, error, step, fused=fused))
        if result.rel_l2 <= moved:
            result.verdicts["simple"] = True
            note(result, CARRIED if moved == math.inf else f"{_ENLARGES} moves it by up to {moved:.3g}")
            return Settled(enlarged=True, by_own=True)
        failed = self._fail(result, limit, unexplained)
        return Settled(failed or (unexplained and self._everything))

    def _off_alone(
        self,
        name: str,
        result: Comparison,
        mode: str,
        inputs: Sequence[Known],
        arrays: tuple[Array, Array] | None,
    ) -> bool:
        """Whether a tensor fails by what its own node makes, though its inputs' errors could explain its own.

        That is looked at where it is off by more than they are, and by more than the rounding of its step.
        """
        if not self._conditions or arrays is None or any(known.bad or known.mode not in ("", mode) for known in inputs):
            return False
        error = max((known.rel_l2 for known in inputs), default=0.0)
        step = self._limits.of(name, result, mode, self._places.place(name), inputs, exact=True)
        if step is None or result.rel_l2 is None or result.rel_l2 <= max(error, step):
            return False
        times, known = self._limits.nudges(name, result), self._limits.known
        found = self._conditions.alone(name, arrays, step, times, known)
        if found is None:
            return False
        result.verdicts["simple"] = False
        text = "by itself, of what each side read, its node makes"
        note(result, f"{text} rel L2 {found[0]:.3g}, of which rounding explains {found[1]:.3g}")
        return True

    def seen(self, name: str, result: Comparison, seen: Seen, place: Place, inputs: Sequence[Known]) -> Settled | None:
        """Correct the verdict of an output by what was observed of it, as its inputs were; None if that passes."""
        limit = self._limits.of(name, seen.result, seen.mode, place, inputs)
        step = self.settle(name, seen.result, seen.mode, inputs, limit, seen.arrays)
        if not step.unexplained:
            return None
        result.verdicts["simple"] = False
        note(result, f"layer by layer: {seen.result.note}")
        return step

    def _explained_by_node(
        self,
        name: str,
        result: Comparison,
        arrays: tuple[Array, Array] | None,
        error: float,
        step: float,
        *,
        fused: int = 1,
    ) -> float:
        """The relative L2 error that a tensor's node explains, run by itself or as one with those before it."""
        if not self._conditions or arrays is None:
            return 0.0
        return self._conditions.explained(name, arrays, error, step, self._limits.nudges(name, result), fused=fused)

    def _carried(
        self, name: str, result: Comparison, inputs: Sequence[Known], arrays: tuple[Array, Array] | None
    ) -> bool:
        """Whether values without a rounding error, such as places of the largest, differ for what was read alone."""
        if arrays is None or not self._conditions or not result.rule.auto or result.verdicts["simple"]:
            return False
        differs = any(known.rel_l2 > 0 for known in inputs)
        if not differs or any(known.bad for known in inputs):
            return False
        step = self._limits.alone(name, result)
        if self._explained_by_node(name, result, arrays, 0.0, step) != math.inf:
            return False
        result.verdicts["simple"] = True
        note(result, CARRIED)
        return True

    def _fail(self, result: Comparison, limit: float, unexplained: bool) -> bool:
        if unexplained and result.verdicts["simple"]:
            result.verdicts["simple"] = False
            note(result, f"rel L2 {result.rel_l2:.3g}, of which rounding explains {limit:.3g}")
            return True
        return False


def note(result: Comparison, text: str) -> None:
    """Add a sentence to what is noted of a comparison."""
    result.note = f"{result.note}; {text}" if result.note else text


def of_two_runs(mode: str, inputs: Sequence[Known]) -> bool:
    """Whether a tensor is of the plain run and what it is made from of another, in which every tensor was observed."""
    return {mode, *(known.mode for known in inputs if known.mode)} >= {"plain", "every"}
