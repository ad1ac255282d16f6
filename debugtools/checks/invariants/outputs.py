"""What two runs say about a relation: the worst output, and whether rounding explains it."""

import math
from collections.abc import Mapping, Sequence

import msgspec
from msgspec import Struct

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.tensors import dtype_name, is_floating
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.checks.invariants.locate import SAME, Found, Locator, RunPair
from layerwise._tool.debugtools.checks.invariants.spec import Located, RelationRow
from layerwise._tool.debugtools.checks.invariants.subject import OutputAxis, Subject
from layerwise._tool.debugtools.compare.arithmetic.tolerance import rounding_bound, unit_roundoff

_UNEXPLAINED = 32.0  # bounds; beyond, the optimised graph breaks a relation that its nodes obey one by one
ON_PURPOSE = frozenset(
    {
        *("TopK", "NonMaxSuppression", "Unique", "NonZero", "Compress", "ArgMax", "ArgMin"),
        *("DynamicQuantizeLinear", "DynamicQuantizeMatMul", "DynamicQuantizeLSTM"),
    }
)
"""Operators that choose among all rows, or take one scale for all: what they do to other rows is asked for."""


class Worst(Struct, frozen=True):
    """The worst output of a relation. excess: its error over what is allowed; failing: all outputs with more than 1."""

    output: str = ""
    rel: float = 0.0
    bound: float = 0.0
    row: int | None = None
    excess: float = 0.0
    failing: tuple[str, ...] = ()


class RelationJudge:
    """Judges runs of one model. cause: the node that broke a relation first; unsteady: the same feed gives other
    outputs when it is run again; deterministic: it gives the same bits.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.locator = Locator(subject.cut, subject.folder, subject.floats, subject.open_session)
        self.cause: Located | None = None
        self.unsteady = self.deterministic = False

    def checked(self) -> list[OutputAxis]:
        """The outputs that have rows, and are not drawn."""
        return [axis for axis in self.subject.axes if axis.axis is not None and axis.name not in self.subject.random]

    def steady(self) -> list[str]:
        """The outputs that are not drawn."""
        return [name for name in self.subject.outputs if name not in self.subject.random]

    def allowed(self, output: str, array: Array, exact: bool) -> float:
        """What rounding explains of the relative L2 error of an output; 0 where nothing is rounded."""
        name = dtype_name(array)
        if not is_floating(name):
            return 0.0
        if exact:
            return SAME * unit_roundoff([name])
        return rounding_bound((name, *self.subject.floats), self.subject.depth(output))

    def worst(
        self,
        runs: tuple[Mapping[str, Array], Mapping[str, Array]],
        case: RunPair,
        axes: Mapping[str, int | None],
    ) -> Worst:
        """The worst of these outputs, with the axis of their rows."""
        found, failing = Worst(), []
        for name, axis in axes.items():
            if name not in runs[0] or name not in runs[1]:
                continue
            first, second = runs[0][name], runs[1][name]
            seen, bound = case.same.test(first, second, axis), self.allowed(name, first, case.exact)
            excess = seen.rel / bound if bound else math.inf if seen.rel else 0.0
            if excess > 1:
                failing.append(name)
            if excess > found.excess or not found.output:
                found = Worst(name, seen.rel, bound, seen.row, excess)
        return Worst(found.output, found.rel, found.bound, found.row, found.excess, tuple(failing))

    def conclude(self, relation: str, worst: Worst, case: RunPair, *, text: str = "", rows: bool = True) -> RelationRow:
        """The row of a relation. text: what was run; rows: it is one between rows, which needs a known batch."""
        if not worst.output:
            return RelationRow(relation, "not checked", "no output can be compared")
        if not worst.failing:
            return RelationRow(relation, "obeyed", text, worst.output, worst.rel, worst.bound)
        found = self._located(worst, case)
        if found.where is None and worst.excess <= _UNEXPLAINED and not found.reason and not case.exact:
            seen = "no layer breaks it by itself: the difference is rounding that later layers enlarge"
            return RelationRow(relation, "obeyed", seen, worst.output, worst.rel, worst.bound)
        if found.where is None and not found.reason and (found.breaks or worst.excess <= _UNEXPLAINED):
            seen = "outputs differ, but no layer breaks it by itself: whether rounding is enlarged cannot be told"
            return RelationRow(relation, "not checked", seen, worst.output, worst.rel, worst.bound)
        if found.where is None and self.unsteady:
            text = "the same inputs give other results in each run, so that nothing can be told of other inputs"
            return RelationRow(relation, "not checked", text, worst.output, worst.rel, worst.bound)
        return self._broken(relation, worst, found, rows)

    def _located(self, worst: Worst, case: RunPair) -> Found:
        asked = msgspec.structs.replace(case, outputs=worst.failing)
        if self.cause is not None and (again := self.locator.again(self.cause, asked)) is not None:
            return Found(again, breaks=True)
        found = self.locator.find(asked)
        self.cause = self.cause or found.where
        return found

    def _broken(self, relation: str, worst: Worst, found: Found, rows: bool) -> RelationRow:
        batch, where = self.subject.batch, found.where or (self.cause if rows else None)
        if where is not None and where.op in ON_PURPOSE:
            text = (
                f"{where.op} {label(where)} works on all rows at once, as it is asked to: nothing behind it is judged"
            )
            return RelationRow(relation, "not checked", text, worst.output, worst.rel, worst.bound, worst.row, where)
        if rows and not batch.certain:
            names = ", ".join(f"{shown(name, 60)}:{axis}" for name, axis in batch.axes.items())
            first = f" (first at {where.op} {label(where)})" if where else ""
            text = (
                f"what would be rows depends on each other{first}, but that it is the batch is {batch.why}. "
                f"If it is, say so: --batch-axis {names}"
            )
            return RelationRow(relation, "not checked", text, worst.output, worst.rel, worst.bound, worst.row, where)
        text = "" if found.where else _no_place(found)
        if where is not None and found.where is None:
            text = f"no other layer breaks it by itself than the one of the relation before, {where.op} {label(where)}"
        return RelationRow(relation, "broken", text, worst.output, worst.rel, worst.bound, worst.row, where)


def _no_place(found: Found) -> str:
    if found.reason:
        return f"its layers could not be observed: {found.reason}"
    return "no layer breaks it when all are observed: look at what the runner makes of the graph (optimisation, state)"


def label(where: Located) -> str:
    """A node by its name, or by the tensor that it makes."""
    return repr(shown(where.node or where.tensor, 120))


def refusal(relation: str, error: LayerwiseError, what: str) -> RelationRow:
    """The row of a relation whose run fails."""
    return RelationRow(relation, "not checked", f"the model does not run with {what}: {error}")


def only(names: Sequence[str]) -> dict[str, int | None]:
    """Outputs that are compared as a whole."""
    return dict.fromkeys(names)
