"""How bad each node is in low precision: measured once, kept in the job for later attempts."""

import math
from collections import defaultdict
from collections.abc import Mapping

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.jobs.journal.earlier_attempts import typed
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.compare.arithmetic.tolerance import Tolerances
from layerwise._tool.debugtools.compare.sides.engine import full_side
from layerwise._tool.debugtools.compare.spec import ToleranceSpec
from layerwise._tool.debugtools.locate.part import Part
from layerwise._tool.debugtools.search.judges.reference_tensors import ReferenceTensors
from layerwise._tool.debugtools.search.precision.measure import Measured, Measurer
from layerwise._tool.debugtools.search.precision.setup import PrecisionSetup, root_mean_square
from layerwise._tool.debugtools.search.rows import ScoreRow
from layerwise._tool.debugtools.search.strategies.precision import Scores
from layerwise._tool.surgery.cut.segments import GraphCut
from layerwise._tool.surgery.model.structure import node_label

_TABLE = "precision"


def measured(setup: PrecisionSetup) -> Scores:
    """The effect of each of the setup's choices, and how many to keep at first: so many that the predicted error of
    the rest is within the tolerance. Rows of table `precision`.
    """
    effect = _earlier(setup) or _measure(setup)
    items = [max(effect.get(i, 0.0) for i in positions) for positions in setup.choices.positions]
    allowed = _allowed(setup.machine.tolerance, setup.machine.golden())
    return Scores(items, max(1, enough(dict(enumerate(items)), allowed)))


def _earlier(setup: PrecisionSetup) -> dict[int, float] | None:
    """What an earlier attempt measured; None if it did not get through."""
    rows = {row.i: row.effect for row in typed(setup.context.previous_rows(_TABLE), ScoreRow)}
    wanted = {i for positions in setup.choices.positions for i in positions}
    return rows if rows.keys() == wanted else None


def _measure(setup: PrecisionSetup) -> dict[int, float]:
    machine, context = setup.machine, setup.context
    side = full_side(setup.suspect)
    cut, feed = side.model.cut, side.fit(machine.feeds[0], lambda text: None)

    def streamed(done: int, total: int, name: str) -> None:
        context.progress(done, total, "FP32 tensors", name)

    tensors = ReferenceTensors(side, side, 0, feed, context.artifacts / "fp32", machine.memory_budget, streamed)
    try:
        nodes = [i for positions in setup.choices.positions for i in positions]
        measurer = Measurer(Part.model(side), setup.way.all_low(), nodes, setup.spec.low, tensors)
        found = measurer.measure(lambda done, total: context.progress(done, total, "nodes measured"))
    finally:
        tensors.close()
    effect = effects(cut, found)
    for i in sorted(effect):
        node = cut.nodes[i]
        made = [name for name in node.output if name]
        context.row(_TABLE, ScoreRow(i, node_label(node), node.op_type, made, found.local[i], effect[i]))
    _tell(setup, found.failures)
    return effect


def _tell(setup: PrecisionSetup, failures: Mapping[int, str]) -> None:
    if failures:
        i, why = next(iter(failures.items()))
        name = shown(node_label(setup.suspect.model.cut.nodes[i]), 120)
        setup.context.warn(
            f"{len(failures)} nodes do not run in {setup.spec.low} and are kept first, such as {name}: {why}"
        )


def _allowed(tolerance: ToleranceSpec, golden: Mapping[str, Array]) -> float:
    """The relative error that the tolerance allows the strictest output, by its root mean square."""
    return min((_of_output(tolerance, name, array) for name, array in golden.items()), default=0.0)


def _of_output(tolerance: ToleranceSpec, name: str, array: Array) -> float:
    rule, scale = Tolerances(tolerance).rule(name), root_mean_square(array)
    return max(rule.rtol, rule.atol / scale) if scale else math.inf


def effects(cut: GraphCut, measured: Measured) -> dict[int, float]:
    """Node -> predicted relative error of the outputs if it alone is low; inf where it overflows or cannot run, even
    where small errors reach nothing.

    First order, as in forward error analysis: an error at a tensor reaches the outputs by all paths, each node on the
    way multiplies it by its gain, and what arrives by several ways adds up as independent errors do, in squares.
    """
    reach = sensitivities(cut, measured.gains)
    return {
        i: _product(local, max((reach[name] for name in cut.nodes[i].output if name), default=0.0))
        for i, local in measured.local.items()
    }


def sensitivities(cut: GraphCut, gains: Mapping[tuple[int, str, str], float]) -> Mapping[str, float]:
    """Tensor -> relative error of the outputs for each unit of relative error in it."""
    squares: defaultdict[str, float] = defaultdict(float, dict.fromkeys(cut.outputs, 1.0))
    by_node: defaultdict[int, list[tuple[str, str, float]]] = defaultdict(list)
    for (i, read, name), gain in gains.items():
        by_node[i].append((read, name, gain))
    for i in sorted(by_node, reverse=True):
        for read, name, gain in by_node[i]:
            squares[read] += gain * gain * squares[name]
    return defaultdict(float, {name: math.sqrt(square) for name, square in squares.items()})


def enough(effect: Mapping[int, float], allowed: float) -> int:
    """How many nodes, the worst first, must be kept for the rest's predicted error to be within `allowed`."""
    left = sum(value * value for value in effect.values() if math.isfinite(value))
    worst = sorted(effect.values(), reverse=True)
    count = sum(not math.isfinite(value) for value in worst)
    while count < len(worst) and left > allowed * allowed:
        left -= worst[count] * worst[count]
        count += 1
    return count


def _product(local: float, reach: float) -> float:
    return local if math.isinf(local) else local * reach
