"""How bad each node is in low precision: measured once, kept in the job for later attempts."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from backends.text import shown
from debugtools.compare.spec import ToleranceSpec
from debugtools.judging.reference import ReferenceTensors
from debugtools.precision.effect import effects, enough
from debugtools.precision.ground import Ground
from debugtools.precision.measure import Measurer
from surgery.precision_plan import node_label

Array = NDArray[Any]
_TABLE = "precision"


class Scores:
    """effect: node -> predicted relative error of the outputs. Rows of table `precision`: i, node, op, outputs, local,
    effect.
    """

    def __init__(self, ground: Ground) -> None:
        self._context, self._choices, self._judge = ground.context, ground.choices, ground.machine
        self._low = ground.spec.low
        context, choices = self._context, self._choices
        wanted = {i for positions in choices.positions for i in positions}
        rows = {row["i"]: row for row in context.previous_rows(_TABLE)}
        self.effect = {i: float(row["effect"]) for i, row in rows.items() if i in wanted}
        if self.effect.keys() != wanted:
            self.effect = self._measure()

    def of_items(self) -> list[float]:
        """The effect of each item of the choices."""
        return [max(self.effect.get(i, 0.0) for i in positions) for positions in self._choices.positions]

    def start(self) -> int:
        """How many items to keep at first: so many that the rest's predicted error is within the tolerance."""
        allowed = _allowed(self._judge.tolerance, self._judge.golden())
        return max(1, enough(dict(enumerate(self.of_items())), allowed))

    def _measure(self) -> dict[int, float]:
        suspect, context = self._judge.suspect, self._context
        cut, file = suspect.model.cut, suspect.model.file
        feed = suspect.fit(self._judge.feeds[0], lambda text: None)
        budget = self._judge.memory_budget

        def streamed(done: int, total: int, name: str) -> None:
            context.progress(done, total, "FP32 tensors", name)

        tensors = ReferenceTensors(suspect, suspect, 0, feed, context.artifacts / "fp32", budget, streamed)
        try:
            measurer = Measurer(cut, file.folder, suspect.spec, self._choices.run, self._low, tensors)
            measured = measurer.measure(lambda done, total: context.progress(done, total, "nodes measured"))
        finally:
            tensors.close()
        effect = effects(cut, measured)
        for i in sorted(effect):
            node = cut.nodes[i]
            about = {"i": i, "node": node_label(node), "op": node.op_type, "outputs": [n for n in node.output if n]}
            context.row(_TABLE, about | {"local": measured.local[i], "effect": effect[i]})
        self._tell(measured.failures)
        return effect

    def _tell(self, failures: Mapping[int, str]) -> None:
        if failures:
            nodes = self._judge.suspect.model.cut.nodes
            i, why = next(iter(failures.items()))
            self._context.warn(
                f"{len(failures)} nodes do not run in {self._low} and are kept first, such as "
                f"{shown(node_label(nodes[i]), 120)}: {why}"
            )


def _allowed(tolerance: ToleranceSpec, golden: Mapping[str, Array]) -> float:
    """The relative error that the tolerance allows the strictest output, by its root mean square."""
    return min((_of_output(tolerance, name, array) for name, array in golden.items()), default=0.0)


def _of_output(tolerance: ToleranceSpec, name: str, array: Array) -> float:
    rtol, atol = (_value(values, name) for values in (tolerance.rtol, tolerance.atol))
    scale = _scale(array[np.isfinite(array)].ravel() if array.dtype.kind == "f" else ())
    return max(rtol, atol / scale) if scale else math.inf


def _value(values: Mapping[str, float], name: str) -> float:
    return values.get(name, values.get("", 1e-5))


def _scale(values: Iterable[float]) -> float:
    array = np.asarray(values, np.float64)
    return float(np.sqrt(np.mean(array * array))) if array.size else 0.0
