"""Two sets of saved tensors (results or inputs), tensor by tensor, by the metrics and tolerances of a comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.results.inference import RunResults, StoredOutputs
from layerwise._tool.backends.tensors import format_shape
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.comparison import Comparison
from layerwise._tool.debugtools.compare.arithmetic.metrics import compare_arrays
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.arithmetic.totals import worst
from layerwise._tool.debugtools.compare.observing.canary import same_bits
from layerwise._tool.debugtools.compare.table.layers import place_of
from layerwise._tool.debugtools.diff.outcome import DiffOutcome
from layerwise._tool.debugtools.diff.spec import DiffSpec

Tensors = Mapping[str, Array]
Stream = tuple[str, Sequence[Tensors]]


def diff_results(a: RunResults, b: RunResults, spec: DiffSpec) -> DiffOutcome:
    """Compare saved outputs: runner by runner in their order (names hold dates), iteration by iteration."""
    first, second = ([(name, [i.outputs for i in its]) for name, its in side.items()] for side in (a, b))
    return _TensorDiff("results", spec).outcome(first, second)


def diff_inputs(a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]], spec: DiffSpec) -> DiffOutcome:
    """Compare saved inputs, iteration by iteration."""
    first, second = ([("", [StoredOutputs(feed) for feed in feeds])] for feeds in (a, b))
    return _TensorDiff("inputs", spec).outcome(first, second)


class _TensorDiff:
    """Compares one tensor after the other; nothing is kept of them."""

    def __init__(self, kind: str, spec: DiffSpec) -> None:
        self.found = DiffOutcome(kind)
        self._shape = self.found.section("runners and iterations", "counts")
        self._changed = self.found.section("tensors that differ", "changed")
        self._only = (
            self.found.section("tensors only in the first", "only_a"),
            self.found.section("tensors only in the second", "only_b"),
        )
        self._empty = self.found.section("tensors without elements", "empty", cosmetic=True)
        self._metrics, self._tolerances = spec.metrics, Tolerances(spec.tolerance)
        self._exact = self._close = 0
        self._worst: tuple[float, str] = (-1.0, "")

    def outcome(self, a: Sequence[Stream], b: Sequence[Stream]) -> DiffOutcome:
        """Compare all and say what it comes to."""
        self._counts("runners", len(a), len(b))
        for number, ((name, first), (_, second)) in enumerate(zip(a, b, strict=False)):
            self._counts("iterations", len(first), len(second))
            for iteration, (x, y) in enumerate(zip(first, second, strict=False)):
                where = [f"iteration {iteration}"] if len(first) > 1 else []
                where += [shown(name, 80)] if len(a) > 1 else []
                self._iteration(x, y, ", ".join(where), {"runner": number, "iteration": iteration})
        self.found.summary = self._summary()
        if self.found.equal and not self._exact + self._close:
            without = "none of their tensors has elements" if self._empty.items else "they hold no tensors"
            self.found.nothing_compared(without)
        return self.found

    def _counts(self, what: str, a: int, b: int) -> None:
        if a != b:
            self._shape.add(f"{what}: {a} and {b}", what=what, a=a, b=b)

    def _iteration(self, a: Tensors, b: Tensors, where: str, fields: Mapping[str, Any]) -> None:
        for name in a:
            if name in b:
                self._tensor(name, a[name], b[name], where, fields)
        for section, one, other in ((self._only[0], a, b), (self._only[1], b, a)):
            for name in one:
                if name not in other:
                    section.add(_label(name, where), tensor=name, **fields)

    def _tensor(self, name: str, a: Array, b: Array, where: str, fields: Mapping[str, Any]) -> None:
        if same_bits(a, b):
            self._exact += a.size > 0
            if not a.size:
                self._empty.add(_label(name, where), tensor=name, **fields)
            return
        result = compare_arrays(a, b, self._tolerances.rule(name), metrics=self._metrics)
        if result.passed:
            self._close += 1
            return
        self._worst = max(self._worst, (result.rel_l2 if result.rel_l2 is not None else 0.0, name))
        text, measured = _measured(result)
        self._changed.add(f"{_label(name, where)} {text}", tensor=name, **fields, **measured)

    def _summary(self) -> str:
        changed = len(self._changed.items)
        count = self._exact + self._close + changed
        close = f"{self._exact} to the bit, {self._close} within tolerance"
        if self.found.equal:
            return f"equal: {count} tensors ({close})"
        if not changed:
            return f"{self.found.kind} differ in what they hold; {count} tensors of both are equal ({close})"
        worst_of = f"; the largest relative L2 error is {self._worst[0]:.4g} in {shown(self._worst[1], 100)!r}"
        return f"{self.found.kind} differ: {changed} of {count} tensors differ, {close}{worst_of}"


def _label(name: str, where: str) -> str:
    return f"{shown(name, 200)} ({where})" if where else shown(name, 200)


def _measured(result: Comparison) -> tuple[str, dict[str, Any]]:
    dtypes, shapes = " and ".join(dict.fromkeys(result.dtypes)), [format_shape(s) for s in result.shapes]
    head = f"{dtypes} {' and '.join(dict.fromkeys(shapes))}:"
    fields: dict[str, Any] = {
        "dtypes": list(result.dtypes), "shapes": [list(s) for s in result.shapes], "metrics": result.verdicts,
        "note": result.note, "over": result.over,
    }  # fmt: skip
    totals = result.totals
    if totals is None:
        return f"{head} {shown(result.note or f'{result.over} elements differ', 300)}", fields
    place = place_of(totals.abs.high_at, result.shapes[0])
    numbers = {"max_abs": worst(totals.abs), "max_rel": worst(totals.rel), "rel_l2": result.rel_l2}
    fields |= {**numbers, "at": place, "size": totals.abs.count, "l2": result.l2, "cosine": result.cosine}
    fields |= {"psnr": result.psnr, "snr": result.snr, "atol": result.rule.atol, "rtol": result.rule.rtol}
    rel = "-" if result.rel_l2 is None else f"{result.rel_l2:.4g}"
    text = f"max abs {numbers['max_abs']:.4g} at {place}, max rel {numbers['max_rel']:.4g}, rel L2 {rel}"
    return f"{head} {text}, {result.over} of {totals.abs.count} over tolerance", fields
